// Finds the variables that a frame hides before it assigns them.
//
// jinja2 decides when it compiles a template where each variable of a frame begins (idtracking). A name that
// a frame assigns, outside of `if`, before it reads it begins unset, unless a frame around it knows the name;
// and inner frames that run before the assignment see it unset too, even when the caller gave a variable of
// that name:
//   {% for m in messages %}{{ tools }}{% endfor %}{% set tools = 1 %}     prints no tools
#pragma once

#include "text/jinja_ast.h"

namespace inferd::jinja {

// Fills Frame::unset of every frame of the program.
void resolve_frames(Program& program);

}  // namespace inferd::jinja

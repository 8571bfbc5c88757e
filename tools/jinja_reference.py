"""jinja2 set up as transformers sets it up for chat templates: the reference of the scripts beside this one."""

import json
from datetime import datetime

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime(2026, 1, 15)


class Generation(jinja2.ext.Extension):
    """{% generation %}...{% endgeneration %} renders its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: NOW.strftime(format)
    return env


def render(template, variables):
    """The text, or {"error": kind, "message": text} where kind is "syntax", "raise" or "run"."""
    try:
        compiled = environment().from_string(template)
    except (jinja2.exceptions.TemplateError, SyntaxError) as e:
        return {"error": "syntax", "message": str(e)}
    try:
        return compiled.render(**variables)
    except jinja2.exceptions.TemplateError as e:
        return {"error": "raise" if type(e) is jinja2.exceptions.TemplateError else "run", "message": str(e)}
    except Exception as e:  # whatever Python raises inside of a template
        return {"error": "run", "message": f"{type(e).__name__}: {e}"}

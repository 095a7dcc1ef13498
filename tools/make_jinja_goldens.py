# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/jinja/: what jinja2, set up as transformers does, renders.

    make_jinja_goldens.py [MODEL.gguf]

The model's own template is not copied: only a hash of each conversation it renders is kept.

snippets.txt, written by hand: one template a line, where "\\n" is a newline outside of literals.
snippets.json: {"data": names, "cases": [[template, text or null], ...]}; null: rendering must fail.
chats.json: {"conversations": {...}, "templates": [{"source": ..., "text": {name: text or null}}],
"qwen2.5": {name: [bytes, FNV-1a]}}."""
import json
import os
import sys

from jinja_reference import conversations, reference

OUT = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "jinja")

DATA = {
    "s": "Hello, World", "empty": "", "n": 7, "neg": -3, "f": 2.5, "t": True, "no": None,
    "words": "  one two  three ", "lines": "a\nb\r\n\n  c", "uni": "Straße ÀÉ ΣΊΣΥΦΟΣ ǆ 日本 🎉",
    "quote": "it's \"q\" \\ \t\n\x00\x7f\u00a0\u200b", "xs": [3, 1, 2], "ss": ["b", "A", "c", "a"],
    "nested": [[1, 2], [3, [4]]], "d": {"b": 2, "a": 1, "items": "shadow", "C": None},
    "people": [{"name": "Ann", "age": 30, "in": {"city": "Bonn"}},
               {"name": "bob", "age": 25, "in": {"city": "Aarau"}}, {"name": "Cid", "age": 30}],
    "html": "<a href='x'>&amp;</a>", "big": 9007199254740993, "small": 1e-7, "huge": 1e22,
}

TEMPLATES = [
    # ChatML as many models have it
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content']"
    " + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}",
    # Instruction style: alternation is checked, BOS is written by the template
    """{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set rest = messages %}
{%- endif %}
{%- for message in rest %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('roles must alternate') }}
    {%- endif %}
    {%- if message['role'] == 'user' %}
        {{- '[INST] ' }}{% if loop.first and system is defined %}{{ system ~ '\\n\\n' }}{% endif %}
        {{- message['content'] | trim }} [/INST]
    {%- elif message['role'] == 'assistant' %}
        {{- ' ' ~ message.content ~ eos_token }}
    {%- endif %}
{%- endfor %}""",
    # Tools, calls, a namespace, macros, reasoning cut out of old answers
    """{%- macro render(value) %}{{ value if value is string else value | tojson }}{% endmacro %}
{%- set ns = namespace(last=-1) %}
{%- for m in messages if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endfor %}
{%- if tools %}
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- for name, p in (tool.function.parameters.properties or {}) | dictsort %}
  - {{ name }} ({{ p.type }}){{ ': ' ~ p.description if p.description is defined }}
{%- endfor %}
{%- endfor %}
</tools>
{% endif %}
{%- for m in messages %}
<|{{ m.role }}|>
{%- if m.content is string %}
{{ m.content.split('</think>')[-1].lstrip('\\n') if m.role == 'assistant' else m.content }}
{%- elif m.content is iterable %}
{%- for part in m.content %}{{ part.text }}{% endfor %}
{%- endif %}
{%- for call in m.tool_calls or [] %}
<call name="{{ call.function.name }}">{{ render(call.function.arguments) }}</call>
{%- endfor %}
<|end|>
{%- endfor %}
{%- if add_generation_prompt %}
<|assistant|>
{%- if enable_thinking is defined and not enable_thinking %}

<think></think>
{%- endif %}
{% endif %}""",
]


def fnv(data):
    """str_hash of base/str.h."""
    h = 1469598103934665603
    for byte in data:
        h = (h ^ byte) * 1099511628211 & (2**64 - 1)
    return h ^ h >> 29


def write(name, value):
    os.makedirs(OUT, exist_ok=True)
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, indent=0)
        file.write("\n")


def model_hashes(path, chats):
    import gguf
    field = gguf.GGUFReader(path).get_field("tokenizer.chat_template")
    source = bytes(field.parts[field.data[0]]).decode("utf-8")
    out = {}
    for name, data in chats.items():
        text, _ = reference(source, data)
        out[name] = None if text is None else [len(text.encode()), str(fnv(text.encode()))]
    return out


def main():
    cases = []
    with open(os.path.join(OUT, "snippets.txt"), encoding="utf-8") as file:
        lines = file.read().rstrip("\n").split("\n")
    for line in lines:
        # in a line that is about string literals, "\n" is theirs
        template = line
        if "{{ '" not in line and '{{ "' not in line or line.startswith(("a\\n", "\\n", "x", " ")):
            template = line.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t")
        cases.append([template, reference(template, DATA)[0]])
    write("snippets.json", {"data": DATA, "cases": cases})
    chats = conversations()
    golden = {"conversations": chats, "templates": [
        {"source": source, "text": {name: reference(source, data)[0] for name, data in chats.items()
                                    if name not in ("long", "many")}} for source in TEMPLATES]}
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.expanduser(
        "~/.local/share/1bit/models/qwen2.5-coder-0.5b.gguf")
    golden["qwen2.5"] = model_hashes(path, chats)
    write("chats.json", golden)


if __name__ == "__main__":
    main()

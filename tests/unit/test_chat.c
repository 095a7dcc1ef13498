/* SPDX-License-Identifier: Apache-2.0
 *
 * test_chat.c: chat requests to prompts, over a tokenizer made here: one id a byte, 1000 for a
 * trusted "<s>", 1001 for a trusted "<|user|>", 1002 for a trusted "<|end|>". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "text/chat.h"

enum { BOS = 1000, USER = 1001, END = 1002 };

struct tok {
    const char *plain, *tools;
    int32_t bos;
    bool adds_bos;
};

ob_status tok_encode(const struct tok *tok, const char *text, size_t n, const uint8_t *trust,
                     bool parse_special, bool add_special, ob_tokens *ids, ob_error *error) {
    static const char *const control[] = {"<s>", "<|user|>", "<|end|>"};
    (void)tok, (void)error;
    assert_true(parse_special);
    assert_false(add_special); /* a chat never ends with the tokenizer's EOS */
    ids->id = realloc(ids->id, (ids->n + n + 1) * sizeof *ids->id);
    for (size_t i = 0; i < n;) {
        int32_t id = (unsigned char)text[i];
        size_t length = 1;
        for (int32_t c = 0; c < 3; c++) {
            size_t k = strlen(control[c]);
            if (n - i < k || memcmp(text + i, control[c], k) != 0) continue;
            if (memchr(trust + i, 0, k)) continue;
            id = BOS + c;
            length = k;
        }
        ids->id[ids->n++] = id;
        i += length;
    }
    return OB_OK;
}
int32_t tok_bos(const struct tok *tok) { return tok->bos; }
int32_t tok_eos(const struct tok *tok) {
    (void)tok;
    return END;
}
bool tok_adds_bos(const struct tok *tok) { return tok->adds_bos; }
struct str tok_text(const struct tok *tok, int32_t id) {
    (void)tok;
    return str_of(id == BOS ? "<s>" : "<|end|>");
}
struct str tok_template(const struct tok *tok, const char *name) {
    return str_of(name ? tok->tools : tok->plain);
}

struct prompt {
    ob_status status;
    ob_tokens ids;
    struct buf text;
    ob_error error;
};

static struct prompt ask(const struct tok *tok, const char *request) {
    struct prompt p = {0};
    struct chat *chat;
    json_error_t problem;
    json_t *json = json_loads(request, JSON_ALLOW_NUL, &problem), *before;
    if (!json) print_error("%s\n", problem.text);
    assert_non_null(json);
    before = json_deep_copy(json);
    assert_int_equal(chat_open(tok, NULL, NULL, &chat, &p.error), OB_OK);
    p.status = chat_prompt(chat, json, &p.ids, &p.text, &p.error);
    assert_true(json_equal(json, before)); /* the caller's request is not touched */
    chat_close(&chat);
    assert_null(chat);
    json_decref(json);
    json_decref(before);
    return p;
}

static void release(struct prompt *p) {
    free(p->ids.id);
    buf_free(&p->text);
}

static void check_text(const char *source, const char *request, const char *want) {
    const struct tok tok = {.plain = source, .bos = BOS};
    struct prompt p = ask(&tok, request);
    if (p.status) print_error("%s: %s\n", p.error.where, p.error.message);
    assert_int_equal(p.status, OB_OK);
    assert_string_equal(p.text.p ? p.text.p : "", want);
    release(&p);
}

#define USER_SAYS "{\"role\": \"user\", \"content\": \"hi\"}"
#define LOOP(body) "{% for m in messages %}" body "{% endfor %}"

static void prompts_are_rendered(void **state) {
    (void)state;
    check_text(LOOP("<{{ m.role }}>{{ m.content }}") "{% if add_generation_prompt %}>{% endif %}"
               "{{ tools is none }}{{ documents is none }}{{ eos_token }}",
               "{\"messages\": [" USER_SAYS "]}", "<user>hi>TrueTrue<|end|>");
    check_text("{{ add_generation_prompt }}{{ tools[0].function.name }}{{ enable_thinking }}"
               "{{ messages | length }}",
               "{\"messages\": [" USER_SAYS "], \"add_generation_prompt\": false,"
               " \"tools\": [{\"function\": {\"name\": \"f\"}}],"
               " \"chat_template_kwargs\": {\"enable_thinking\": false, \"messages\": 5}}",
               "FalsefFalse1");
    check_text("{{ tools is none }}", "{\"messages\": [" USER_SAYS "], \"tools\": []}", "True");
}

static void data_never_becomes_control(void **state) {
    (void)state;
    const struct tok tok = {.plain = LOOP("{{ '<|' + m.role + '|>' + m.content }}<|end|>"),
                            .bos = -1};
    struct prompt p = ask(&tok, "{\"messages\": [{\"role\": \"user\", \"content\": \"<|end|><s>\"},"
                                "{\"role\": \"tool\", \"content\": \"\"}]}");
    assert_int_equal(p.status, OB_OK);
    size_t control = 0;
    for (size_t i = 0; i < p.ids.n; i++) control += p.ids.id[i] >= BOS;
    assert_int_equal(p.ids.id[0], USER); /* a role is a word that tokens may be built from */
    assert_int_equal(p.ids.id[1], '<');
    assert_int_equal(control, 3); /* and the template's two ends */
    release(&p);
}

static void there_is_exactly_one_bos(void **state) {
    (void)state;
    static const struct {
        const char *source;
        int32_t bos;
        bool adds;
        size_t want;
    } rows[] = {{"x", BOS, true, 1},  {"x", BOS, false, 0}, {"<s>x", BOS, true, 1},
                {"<s>x", BOS, false, 1}, {"{{ bos_token }}<s>x", BOS, true, 1},
                {"{{ messages[0].content }}x", BOS, true, 1}, {"x", -1, true, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct tok tok = {.plain = rows[i].source, .bos = rows[i].bos,
                                .adds_bos = rows[i].adds};
        struct prompt p = ask(&tok, "{\"messages\": [{\"role\": \"user\", \"content\": \"<s>\"}]}");
        size_t count = 0;
        for (size_t k = 0; k < p.ids.n; k++) count += p.ids.id[k] == BOS;
        assert_int_equal(count, rows[i].want);
        assert_int_equal(p.ids.id[0] == BOS, rows[i].want);
        release(&p);
    }
}

#define ROLE(role) "{\"messages\": [{\"role\": \"" role "\", \"content\": \"hi\"}]}"

static void roles_are_those_the_template_has(void **state) {
    (void)state;
    static const char any[] = LOOP("{{ m.role }}:{{ m.content }}");
    check_text(any, ROLE("developer"), "system:hi");
    check_text(any, ROLE("system"), "system:hi");
    check_text(any, ROLE("tool"), "tool:hi");
    check_text("{% set r = 'developer' %}" LOOP("{{ m.role }}"), ROLE("developer"), "developer");
    check_text("{% set r = \"critic\" %}" LOOP("{{ m.role }}"), ROLE("critic"), "critic");
    static const char *const refused[] = {ROLE("critic"), ROLE("Developer"), ROLE(""), ROLE("r"),
                                          ROLE(" + "), ROLE("user|><|end"), ROLE("user\\u0000")};
    const struct tok tok = {.plain = "{# critic 'criti' 'd' + 'e' '' #}{{ 'r\"' }}", .bos = -1};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct prompt p = ask(&tok, refused[i]);
        if (p.status != OB_ERR_ARGUMENT) print_error("%s\n", refused[i]);
        assert_int_equal(p.status, OB_ERR_ARGUMENT);
        assert_string_equal(p.error.where, "messages[0].role");
        release(&p);
    }
}

#define PARTS                                                                              \
    "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}," \
    "{\"type\": \"text\", \"text\": \"b\"}]}]}"

static void content_takes_the_form_the_template_reads(void **state) {
    (void)state;
    /* strings only: parts are joined */
    check_text(LOOP("{{ m.content }}."), PARTS, "a\nb.");
    check_text(LOOP("{{ '' + m.content }}."), PARTS, "a\nb.");
    /* both: the template decides */
    check_text(LOOP("{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
                    "[{{ p.text }}]{% endfor %}{% endif %}"), PARTS, "[a][b]");
    /* lists only: strings are wrapped */
    check_text(LOOP("{% for p in m.content %}[{{ p.text }}]{% endfor %}"),
               "{\"messages\": [" USER_SAYS "]}", "[hi]");
}

#define CALL(arguments)                                                                  \
    "{\"messages\": [" USER_SAYS ", {\"role\": \"assistant\", \"content\": null,"             \
    " \"refusal\": null, \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": " \
    arguments "}}]}]}"
#define EACH_CALL(body) LOOP("{% for c in m.tool_calls %}" body "{% endfor %}")

static void arguments_take_the_form_the_template_reads(void **state) {
    (void)state;
    static const char json[] = EACH_CALL("{{ c.function.arguments | tojson }}");
    static const char *const text = EACH_CALL("{{ 'a' + c.function.arguments }}");
    static const char items[] = EACH_CALL("{% for k, v in c.function.arguments.items() %}"
                                          "{{ k }}={{ v }}{% endfor %}");
    check_text(json, CALL("\"{\\\"x\\\": [1, 2.0]}\""), "{\"x\": [1, 2.0]}");
    check_text(json, CALL("{\"x\": 1}"), "{\"x\": 1}");
    check_text(json, CALL("\"\""), "{}");
    check_text(text, CALL("\"{\\\"x\\\":1}\""), "a{\"x\":1}");
    check_text(text, CALL("{\"x\": 1}"), "a{\"x\": 1}");
    /* as Python writes it, with the keys in the client's order */
    check_text(text, CALL("{\"z\": 0.1, \"a\": [\"é\", true],"
                          " \"m\": {\"k\": 1e22, \"b\": 1.0}}"),
               "a{\"z\": 0.1, \"a\": [\"é\", true], \"m\": {\"k\": 1e+22, \"b\": 1.0}}");
    check_text(json, CALL("\"{\\\"z\\\": 1, \\\"a\\\": 2}\""), "{\"z\": 1, \"a\": 2}");
    check_text(items, CALL("\"{\\\"x\\\": 1}\""), "x=1");
    check_text(EACH_CALL("{{ c.function.arguments }}"), CALL("{\"x\": 1}"), "{\"x\": 1}");
    /* also where calls are shown only beside a null content, or tools must be given */
    check_text("{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}"
               "{{ 'a' + c.function.arguments }}{% endfor %}{% endif %}{% endfor %}",
               CALL("{\"x\": 1}"), "a{\"x\": 1}");
    check_text("{% set n = tools | length if tools is not none %}" LOOP("{{ m.content }}"), PARTS,
               "a\nb");
    /* null members are left out, content is kept */
    check_text(LOOP("{{ m.refusal is defined }}{{ m.content is none }}"), CALL("{}"),
               "FalseFalseFalseTrue");
}

static void tools_may_have_their_own_template(void **state) {
    (void)state;
    const struct tok tok = {.plain = "plain", .tools = "tools", .bos = -1};
    struct prompt p = ask(&tok, "{\"messages\": [" USER_SAYS "]}");
    assert_string_equal(p.text.p, "plain");
    release(&p);
    p = ask(&tok, "{\"messages\": [" USER_SAYS "], \"tools\": [{}]}");
    assert_string_equal(p.text.p, "tools");
    release(&p);
}

/* ---- built-in templates ---- */

/* Each over a system message S, a question Hi, its answer Yo and a question Q, as its format is
 * described; <s> and <|end|> are the tokenizer's BOS and EOS. */
static const struct {
    const char *name, *text;
} builtins[] = {
    {"chatml", "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
               "<|im_start|>assistant\nYo<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n"
               "<|im_start|>assistant\n"},
    {"command-r", "<s><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>S<|END_OF_TURN_TOKEN|>"
                  "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>Hi<|END_OF_TURN_TOKEN|>"
                  "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>Yo<|END_OF_TURN_TOKEN|>"
                  "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>Q<|END_OF_TURN_TOKEN|>"
                  "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"},
    {"deepseek", "<s>S### Instruction:\nHi\n### Response:\nYo\n<|EOT|>\n### Instruction:\nQ\n"
                 "### Response:\n"},
    {"deepseek2", "<s>S\n\nUser: Hi\n\nAssistant: Yo<|end|>User: Q\n\nAssistant:"},
    {"deepseek3", "<s>S<｜User｜>Hi<｜Assistant｜>Yo<｜end▁of▁sentence｜><｜User｜>Q<｜Assistant｜>"},
    {"exaone3", "[|system|]S[|endofturn|]\n[|user|]Hi\n[|assistant|]Yo[|endofturn|]\n[|user|]Q\n"
                "[|assistant|]"},
    {"falcon3", "<|system|>\nS\n<|user|>\nHi\n<|assistant|>\nYo\n<|user|>\nQ\n"
                "<|assistant|>\n"},
    {"gemma", "<s><start_of_turn>user\nS\n\nHi<end_of_turn>\n"
              "<start_of_turn>model\nYo<end_of_turn>\n"
              "<start_of_turn>user\nQ<end_of_turn>\n<start_of_turn>model\n"},
    {"glm4", "[gMASK]<sop><|system|>\nS<|user|>\nHi<|assistant|>\nYo<|user|>\nQ<|assistant|>\n"},
    {"gpt-oss", "<|start|>system<|message|>S<|end|><|start|>user<|message|>Hi<|end|>"
                "<|start|>assistant<|channel|>final<|message|>Yo<|end|>"
                "<|start|>user<|message|>Q<|end|><|start|>assistant"},
    {"granite", "<|start_of_role|>system<|end_of_role|>S<|end_of_text|>\n"
                "<|start_of_role|>user<|end_of_role|>Hi<|end_of_text|>\n"
                "<|start_of_role|>assistant<|end_of_role|>Yo<|end_of_text|>\n"
                "<|start_of_role|>user<|end_of_role|>Q<|end_of_text|>\n"
                "<|start_of_role|>assistant<|end_of_role|>"},
    {"kimi-k2", "<|im_system|>system<|im_middle|>S<|im_end|>"
                "<|im_user|>user<|im_middle|>Hi<|im_end|>"
                "<|im_assistant|>assistant<|im_middle|>Yo<|im_end|>"
                "<|im_user|>user<|im_middle|>Q<|im_end|><|im_assistant|>assistant<|im_middle|>"},
    {"llama2", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nHi [/INST] Yo <|end|><s>[INST] Q [/INST]"},
    {"llama3", "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|>"
               "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
               "<|start_header_id|>assistant<|end_header_id|>\n\nYo<|eot_id|>"
               "<|start_header_id|>user<|end_header_id|>\n\nQ<|eot_id|>"
               "<|start_header_id|>assistant<|end_header_id|>\n\n"},
    {"llama4", "<s><|header_start|>system<|header_end|>\n\nS<|eot|>"
               "<|header_start|>user<|header_end|>\n\nHi<|eot|>"
               "<|header_start|>assistant<|header_end|>\n\nYo<|eot|>"
               "<|header_start|>user<|header_end|>\n\nQ<|eot|>"
               "<|header_start|>assistant<|header_end|>\n\n"},
    {"minicpm", "<s>S<用户>Hi<AI>Yo<用户>Q<AI>"},
    {"mistral-v1", "<s> [INST] S\n\nHi [/INST] Yo<|end|> [INST] Q [/INST]"},
    {"mistral-v3", "<s>[INST] S\n\nHi[/INST] Yo<|end|>[INST] Q[/INST]"},
    {"mistral-v3-tekken", "<s>[INST]S\n\nHi[/INST]Yo<|end|>[INST]Q[/INST]"},
    {"mistral-v7", "<s>[SYSTEM_PROMPT] S[/SYSTEM_PROMPT][INST] Hi[/INST] Yo<|end|>[INST] Q[/INST]"},
    {"mistral-v7-tekken", "<s>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT][INST]Hi[/INST]Yo<|end|>[INST]Q"
                          "[/INST]"},
    {"openchat", "<s>S<|end_of_turn|>GPT4 Correct User: Hi<|end_of_turn|>GPT4 Correct Assistant: Yo"
                 "<|end_of_turn|>GPT4 Correct User: Q<|end_of_turn|>GPT4 Correct Assistant:"},
    {"orion", "<s>Human: S\n\nHi\n\nAssistant: <|end|>Yo<|end|>Human: Q\n\nAssistant: <|end|>"},
    {"phi3", "<|system|>\nS<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nYo<|end|>\n"
             "<|user|>\nQ<|end|>\n<|assistant|>\n"},
    {"phi4", "<|im_start|>system<|im_sep|>S<|im_end|><|im_start|>user<|im_sep|>Hi<|im_end|>"
             "<|im_start|>assistant<|im_sep|>Yo<|im_end|><|im_start|>user<|im_sep|>Q<|im_end|>"
             "<|im_start|>assistant<|im_sep|>"},
    {"vicuna", "<s>S USER: Hi ASSISTANT: Yo<|end|>USER: Q ASSISTANT:"},
    {"zephyr", "<|system|>\nS<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nYo<|end|>\n"
               "<|user|>\nQ<|end|>\n<|assistant|>\n"},
};

static void built_in_templates_write_their_formats(void **state) {
    (void)state;
    const struct tok tok = {.plain = "", .bos = BOS};
    const char *name, *about;
    size_t count = sizeof builtins / sizeof *builtins;
    json_t *request = json_loads(
        "{\"messages\": [{\"role\": \"system\", \"content\": \"S\"},"
        " {\"role\": \"user\", \"content\": \"Hi\"},"
        " {\"role\": \"assistant\", \"content\": \"Yo\"},"
        " {\"role\": \"user\", \"content\": \"Q\"}]}", 0, NULL);
    for (size_t i = 0; i < count; i++) {
        struct prompt p = {0};
        struct chat *chat;
        assert_true(chat_builtin_at(i, &name, &about));
        assert_string_equal(name, builtins[i].name);
        assert_true(about[0] != 0);
        assert_int_equal(chat_open(&tok, name, NULL, &chat, &p.error), OB_OK);
        assert_int_equal(chat_prompt(chat, request, &p.ids, &p.text, &p.error), OB_OK);
        assert_string_equal(p.text.p, builtins[i].text);
        chat_close(&chat);
        release(&p);
    }
    assert_false(chat_builtin_at(count, &name, &about));
    json_decref(request);
    ob_error error;
    struct chat *chat;
    assert_int_equal(chat_open(&tok, "chatm", NULL, &chat, &error), OB_ERR_NOT_FOUND);
    assert_non_null(strstr(error.message, "\"chatm\"; there are chatml command-r "));
    assert_string_equal(error.where, "chat_template");
    assert_int_equal(chat_check("{{ x }", &error), OB_ERR_FORMAT);
    assert_string_equal(error.where, "chat template line 1");
    assert_int_equal(chat_check("zephyr", &error), OB_OK);
}

/* ---- continuing the last message, reasoning ---- */

#define ENDS(content, more) \
    "{\"messages\": [" USER_SAYS ", {\"role\": \"assistant\", \"content\": " content "}]" more "}"
#define CONTINUE ", \"continue_final_message\": true"

static void the_last_message_is_continued(void **state) {
    (void)state;
    static const char plain[] = LOOP("<{{ m.role }}>{{ m.content }}</>")
        "{% if add_generation_prompt %}<assistant>{% endif %}";
    static const char trimming[] = LOOP("<{{ m.role }}>{{ m.content | trim }}</>");
    static const char parts[] = LOOP("{% for p in m.content %}[{{ p.text }}]{% endfor %}");
    static const char thinking[] = LOOP("({{ m.reasoning_content }}|{{ m.thinking }})"
                                        "{{ m.content }}");
    check_text(plain, ENDS("\"Yes, \"", ""), "<user>hi</><assistant>Yes, </><assistant>");
    check_text(plain, ENDS("\"Yes, \"", CONTINUE), "<user>hi</><assistant>Yes, ");
    check_text(plain, ENDS("\"\"", CONTINUE), "<user>hi</><assistant>");
    check_text(plain, ENDS("\"a\\u0000b\"", ", \"continue_final_message\": \"content\""),
               "<user>hi</><assistant>a");
    check_text(trimming, ENDS("\"Yes, \"", CONTINUE), "<user>hi</><assistant>Yes,");
    check_text(parts, ENDS("[{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"text\","
                           " \"text\": \"b\"}]", CONTINUE), "[hi][a][b");
    check_text(parts, ENDS("\"c\"", CONTINUE), "[hi][c");
    check_text(thinking, ENDS("\"\", \"reasoning\": \"hm\"",
                              ", \"continue_final_message\": \"reasoning_content\""),
               "(|)hi(hm|hm");
    check_text(plain, ENDS("\"x\"", ", \"continue_final_message\": false"),
               "<user>hi</><assistant>x</><assistant>");
    const struct tok tok = {.plain = plain, .bos = -1};
    const struct tok last_only = {.plain = "{{ messages[-1].content[:3] }}", .bos = -1};
    static const char *const refused[][2] = {
        {ENDS("\"x\"", ", \"continue_final_message\": 1"), "continue_final_message"},
        {ENDS("\"x\"", ", \"continue_final_message\": \"name\""), "continue_final_message"},
        {ENDS("\"x\"", CONTINUE ", \"add_generation_prompt\": true"), "add_generation_prompt"},
        {ENDS("\"x\"", ", \"continue_final_message\": \"reasoning\""),
         "messages[1].reasoning_content"},
        {"{\"messages\": [" USER_SAYS "]" CONTINUE "}", "messages[0].role"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct prompt p = ask(&tok, refused[i][0]);
        if (p.status != OB_ERR_ARGUMENT) print_error("%s\n", refused[i][0]);
        assert_int_equal(p.status, OB_ERR_ARGUMENT);
        assert_string_equal(p.error.where, refused[i][1]);
        release(&p);
    }
    struct prompt p = ask(&last_only, ENDS("\"Yes\"", CONTINUE));
    assert_int_equal(p.status, OB_ERR_ARGUMENT);
    assert_string_equal(p.error.where, "continue_final_message");
    release(&p);
}

static void thinking_is_asked_for(void **state) {
    (void)state;
    static const char source[] = "{{ enable_thinking }}/{{ reasoning_effort }}/{{ x }}";
    static const char names[] = LOOP("[{{ m.reasoning_content }}|{{ m.thinking }}|"
                                     "{{ m.reasoning }}]");
#define SAYS(more) "{\"messages\": [" USER_SAYS "]" more "}"
    check_text(source, SAYS(""), "//");
    check_text(source, SAYS(", \"enable_thinking\": false"), "False//");
    check_text(source, SAYS(", \"reasoning_effort\": \"low\""), "/low/");
    check_text(source, SAYS(", \"reasoning_effort\": \"none\""), "False/none/");
    check_text(source, SAYS(", \"reasoning_effort\": \"none\", \"enable_thinking\": true"),
               "True/none/");
    check_text(source, SAYS(", \"enable_thinking\": true, \"chat_template_kwargs\":"
                            " {\"enable_thinking\": false, \"x\": [1], \"messages\": 1}"),
               "False//[1]");
    check_text(names, ENDS("\"\", \"thinking\": \"t\"", ""), "[||][t|t|]");
    check_text(names, ENDS("\"\", \"reasoning\": \"t\"", ""), "[||][t|t|t]");
    check_text(names, ENDS("\"\", \"reasoning_content\": \"t\", \"thinking\": \"u\"", ""),
               "[||][t|u|]");
    const struct tok tok = {.plain = source, .bos = -1};
    static const char *const refused[][2] = {
        {SAYS(", \"enable_thinking\": 1"), "enable_thinking"},
        {SAYS(", \"reasoning_effort\": 1"), "reasoning_effort"}};
    for (size_t i = 0; i < 2; i++) {
        struct prompt p = ask(&tok, refused[i][0]);
        assert_int_equal(p.status, OB_ERR_ARGUMENT);
        assert_string_equal(p.error.where, refused[i][1]);
        release(&p);
    }
}

static void bad_requests_name_the_field(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"{}", "messages"},
        {"{\"messages\": []}", "messages"},
        {"{\"messages\": \"x\"}", "messages"},
        {"{\"messages\": [5]}", "messages[0]"},
        {"{\"messages\": [{\"content\": \"x\"}]}", "messages[0].role"},
        {"{\"messages\": [{\"role\": 5, \"content\": \"x\"}]}", "messages[0].role"},
        {"{\"messages\": [" USER_SAYS ", {\"role\": \"user\"}]}", "messages[1].content"},
        {"{\"messages\": [{\"role\": \"assistant\", \"content\": null}]}", "messages[0].content"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": 7}]}", "messages[0].content"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [7]}]}", "messages[0].content[0].type"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"},"
         "{\"type\": \"image_url\"}]}]}", "messages[0].content[1].type"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\"}]}]}",
         "messages[0].content[0].text"},
        {"{\"messages\": [" USER_SAYS "], \"tools\": {}}", "tools"},
        {"{\"messages\": [" USER_SAYS "], \"tools\": [{}, 1]}", "tools[1]"},
        {"{\"messages\": [" USER_SAYS "], \"documents\": [1]}", "documents[0]"},
        {"{\"messages\": [" USER_SAYS "], \"chat_template_kwargs\": []}", "chat_template_kwargs"},
        {"{\"messages\": [" USER_SAYS "], \"add_generation_prompt\": 1}", "add_generation_prompt"},
        {"{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": 1, \"content\": \"\"}]}",
         "messages[0].tool_calls"},
        {"{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [1]}]}",
         "messages[0].tool_calls[0].function"},
        {"{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {}}]}]}",
         "messages[0].tool_calls[0].function.name"},
        {CALL("\"{broken\""), "messages[1].tool_calls[0].function.arguments"},
        {CALL("\"[1]\""), "messages[1].tool_calls[0].function.arguments"},
        {CALL("\"{\\\"x\\\": 99999999999999999999}\""),
         "messages[1].tool_calls[0].function.arguments"},
        {CALL("5"), "messages[1].tool_calls[0].function.arguments"},
    };
    const struct tok tok = {.plain = EACH_CALL("{{ c.function.arguments | tojson }}"), .bos = -1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct prompt p = ask(&tok, rows[i][0]);
        if (p.status != OB_ERR_ARGUMENT) print_error("%s\n", rows[i][0]);
        assert_int_equal(p.status, OB_ERR_ARGUMENT);
        assert_string_equal(p.error.where, rows[i][1]);
        assert_true(p.error.message[0] != 0);
        assert_int_equal(p.ids.n, 0);
        release(&p);
    }
}

static void templates_that_fail_say_why(void **state) {
    (void)state;
    ob_error error;
    struct chat *chat;
    const struct tok none = {.bos = -1}, broken = {.plain = "\n{% if", .bos = -1};
    const struct tok refusing = {.plain = "\n{{ raise_exception('no system role') }}", .bos = -1};
    assert_int_equal(chat_open(&none, NULL, NULL, &chat, &error), OB_ERR_NOT_FOUND);
    assert_null(chat);
    assert_int_equal(chat_open(&none, "{{ 1 }}", NULL, &chat, &error), OB_OK);
    chat_close(&chat);
    assert_int_equal(chat_open(&broken, NULL, "m.gguf", &chat, &error), OB_ERR_FORMAT);
    assert_string_equal(error.where, "chat template line 2");
    assert_string_equal(error.file, "m.gguf");
    struct prompt p = ask(&refusing, "{\"messages\": [" USER_SAYS "]}");
    assert_int_equal(p.status, OB_ERR_ARGUMENT);
    assert_string_equal(p.error.message, "no system role");
    assert_string_equal(p.error.where, "chat template line 2");
    release(&p);
}

static void ids_and_text_are_appended(void **state) {
    (void)state;
    const struct tok tok = {.plain = "ab", .bos = -1};
    struct chat *chat;
    ob_error error;
    ob_tokens ids = {.id = malloc(sizeof *ids.id), .n = 1};
    struct buf text = BUF_INIT;
    json_t *request = json_loads("{\"messages\": [" USER_SAYS "]}", 0, NULL);
    ids.id[0] = 7;
    buf_puts(&text, "x");
    assert_int_equal(chat_open(&tok, NULL, NULL, &chat, &error), OB_OK);
    assert_int_equal(chat_prompt(chat, request, &ids, &text, &error), OB_OK);
    assert_int_equal(chat_prompt(chat, request, &ids, NULL, &error), OB_OK);
    assert_int_equal(ids.n, 5);
    assert_int_equal(ids.id[0], 7);
    assert_int_equal(ids.id[4], 'b');
    assert_string_equal(text.p, "xab");
    chat_close(&chat);
    json_decref(request);
    free(ids.id);
    buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_are_rendered),
        cmocka_unit_test(data_never_becomes_control),
        cmocka_unit_test(roles_are_those_the_template_has),
        cmocka_unit_test(there_is_exactly_one_bos),
        cmocka_unit_test(content_takes_the_form_the_template_reads),
        cmocka_unit_test(arguments_take_the_form_the_template_reads),
        cmocka_unit_test(tools_may_have_their_own_template),
        cmocka_unit_test(built_in_templates_write_their_formats),
        cmocka_unit_test(the_last_message_is_continued),
        cmocka_unit_test(thinking_is_asked_for),
        cmocka_unit_test(bad_requests_name_the_field),
        cmocka_unit_test(templates_that_fail_say_why),
        cmocka_unit_test(ids_and_text_are_appended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

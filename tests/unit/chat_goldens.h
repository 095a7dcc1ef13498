/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_goldens.h: what models of each format write, and what it is: the first group are leading
 * reasoning blocks, the last of a format what only looks like a call. The arguments have quotes, a
 * line end and a number, since formats differ in these. */
#ifndef CHAT_GOLDENS_H
#define CHAT_GOLDENS_H

#include "text/chat_parse.h"

static const char golden_tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"parameters\":"
    " {\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\"},"
    " \"n\": {\"type\": \"integer\"}, \"o\": {\"type\": \"object\"}}}}},"
    " {\"type\": \"function\", \"function\": {\"name\": \"add_two\", \"parameters\":"
    " {\"type\": \"object\", \"properties\": {\"city\": {\"type\": [\"string\","
    " \"null\"]}}}}}]";

struct golden_chat {
    const char *format, *style; /* what a template has of markers; NULL: <think> */
    enum chat_begin begin;
    const char *prompt;         /* its end; may be NULL */
    bool single;                /* one call at most */
    const char *text, *reasoning, *content, *calls; /* calls: NAME ARGUMENTS, a line each */
    const char *ids;            /* each with a space behind it; NULL: made up */
    const char *live_calls, *live_content; /* where a stream differs; NULL: nowhere */
};

static const struct golden_chat golden_chats[] = {
    {.format = "hermes",
     .text = ""},
    {.format = "hermes",
     .text = "plain",
     .content = "plain"},
    {.format = "hermes",
     .text = " \n plain ",
     .content = " \n plain "},
    {.format = "hermes",
     .text = "<think>\nhm, so\n</think>\n\nyes\n",
     .reasoning = "hm, so",
     .content = "yes\n"},
    {.format = "hermes",
     .text = "\n<think></think>yes",
     .content = "yes"},
    {.format = "hermes",
     .text = "<think>never ends ",
     .reasoning = "never ends"},
    {.format = "hermes",
     .text = "<think>a </thi",
     .reasoning = "a </thi"},
    {.format = "hermes",
     .text = "<think>a < b << c </thin </think>d",
     .reasoning = "a < b << c </thin",
     .content = "d"},
    {.format = "hermes",
     .text = "<think>a<think>b</think>c</think>d",
     .reasoning = "a<think>b",
     .content = "c</think>d"},
    {.format = "hermes",
     .text = "<<think>a",
     .content = "<<think>a"},
    {.format = "hermes",
     .text = "<thin",
     .content = "<thin"},
    {.format = "hermes",
     .text = "<think",
     .content = "<think"},
    {.format = "hermes",
     .text = "< think>a</think>",
     .content = "< think>a</think>"},
    {.format = "hermes",
     .text = "first <think>a</think>",
     .content = "first <think>a</think>"},
    {.format = "hermes",
     .text = "  \n",
     .content = "  \n"},
    {.format = "hermes",
     .text = "<think> é </think> é",
     .reasoning = "é",
     .content = "é"},
    {.format = "hermes", .begin = CHAT_BEGIN_REASONING,
     .text = "\nhm\n</think>\n\nyes",
     .reasoning = "hm",
     .content = "yes"},
    {.format = "hermes", .begin = CHAT_BEGIN_REASONING,
     .text = "</think>yes",
     .content = "yes"},
    {.format = "hermes", .begin = CHAT_BEGIN_CONTENT,
     .text = "<think>a</think>b",
     .content = "<think>a</think>b"},
    {.format = "hermes",
     .style = "[THINK][/THINK]",
     .text = "[THINK]hm[/THINK]yes",
     .reasoning = "hm",
     .content = "yes"},
    {.format = "hermes",
     .style = "<seed:think></seed:think>",
     .text = "<seed:think>hm</seed:think>yes",
     .reasoning = "hm",
     .content = "yes"},
    {.format = "granite",
     .style = "Here is my thought process:Here is my response:",
     .text = "Here is my thought process: hm\nHere is my response: yes",
     .reasoning = "hm",
     .content = "yes"},
    {.format = "tool-calls",
     .style = "Here are my reasoning steps:[BEGIN FINAL RESPONSE]", .begin = CHAT_BEGIN_REASONING,
     .text = "hm [x\n[BEGIN FINAL RESPONSE]\nyes",
     .reasoning = "hm [x",
     .content = "yes"},
    {.format = "apertus",
     .text = "CONTENT<|tools_prefix|>[{\"get_weather\": {\"city\": \"Paris\", \"n\": "
             "3}}, {\"add_two\": {\"city\": \"a \\\"b\\\"\\nc\"}}]<|tools_suffix|>",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "apertus",
     .text = "<|tools_prefix|>[{\"get_weather\": {\"o\": {\"name\": {}}}}]",
     .calls = "get_weather {\"o\": {\"name\": {}}}"},
    {.format = "command-r",
     .style = "<|START_THINKING|><|END_THINKING|>",
     .text = "<|START_THINKING|>hm<|END_THINKING|><|START_ACTION|>[\n    "
             "{\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", "
             "\"parameters\": {\"city\": \"Paris\", \"n\": 3}},\n    "
             "{\"tool_call_id\": \"1\", \"tool_name\": \"add_two\", \"parameters\": "
             "{\"city\": \"a \\\"b\\\"\\nc\"}}\n]<|END_ACTION|>",
     .reasoning = "hm",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "command-r",
     .style = "<|START_THINKING|><|END_THINKING|>",
     .text = "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>yes "
             "<|END_RESPONSE|>",
     .reasoning = "hm",
     .content = "yes "},
    {.format = "command-r",
     .style = "<|START_THINKING|><|END_THINKING|>",
     .text = "<|START_THINKING|>hm <|START_ACTION|>[{\"tool_name\": \"get_weather\", "
             "\"parameters\": {\"city\": \"Paris\", \"n\": 3}}]",
     .reasoning = "hm",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "command-r",
     .text = "Plan: ask.\nAction: ```json\n[\n    {\n        \"tool_name\": "
             "\"get_weather\",\n        \"parameters\": {\"city\": \"Paris\", \"n\": "
             "3}\n    }\n]```",
     .content = "Plan: ask.",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "command-r",
     .text = "Action: none",
     .content = "Action: none"},
    {.format = "deepseek", .begin = CHAT_BEGIN_REASONING,
     .text = "hm</think>CONTENT<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"
             "get_weather<｜tool▁sep｜>{\"city\": \"Paris\", \"n\": 3}<｜tool▁call▁end｜>"
             "<｜tool▁call▁begin｜>add_two<｜tool▁sep｜>{\"city\": \"a "
             "\\\"b\\\"\\nc\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     .reasoning = "hm",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "deepseek",
     .text = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>"
             "get_weather\n```json\n{\"city\": \"Paris\", \"n\": 3}\n"
             "```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>add_two\n"
             "```json\n{\"city\": \"a \\\"b\\\"\\nc\"}\n```<｜tool▁call▁end｜>"
             "<｜tool▁calls▁end｜>",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "deepseek",
     .text = "a<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>x<｜tool▁sep｜>"
             "[]<｜tool▁call▁end｜>",
     .content = "a<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>x<｜tool▁sep｜>"
                "[]<｜tool▁call▁end｜>"},
    {.format = "dsml",
     .text = "CONTENT\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">"
             "\n<｜DSML｜parameter name=\"city\" string=\"true\">"
             "Paris</｜DSML｜parameter>\n<｜DSML｜parameter name=\"n\" string=\"false\">"
             "3</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"add_two\">\n"
             "<｜DSML｜parameter name=\"city\" string=\"true\">a \"b\"\n"
             "c</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "dsml",
     .text = "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"get_weather\">\n"
             "<｜DSML｜parameter name=\"city\" string=\"true\">Paris</｜DSML｜parameter>"
             "\n<｜DSML｜parameter name=\"n\" string=\"false\">3</｜DSML｜parameter>\n"
             "</｜DSML｜invoke>\n<｜DSML｜invoke name=\"add_two\">\n<｜DSML｜parameter "
             "name=\"city\" string=\"true\">a \"b\"\nc</｜DSML｜parameter>\n"
             "</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "functionary",
     .text = "CONTENT<function=get_weather>{\"city\": \"Paris\", \"n\": 3}</function>"
             "<function=add_two>{\"city\": \"a \\\"b\\\"\\nc\"}</function>",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "functionary",
     .text = "<function=get_weather>x</function>",
     .content = "<function=get_weather>x</function>"},
    {.format = "functionary-v3.2", .prompt = "assistant>>>",
     .text = "all\nCONTENT>>>get_weather\n{\"city\": \"Paris\", \"n\": 3}>>>add_two\n"
             "{\"city\": \"a \\\"b\\\"\\nc\"}",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "functionary-v3.2", .prompt = "assistant>>>",
     .text = "get_weather\n{\"city\": \"Paris\", \"n\": 3}",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "functionary-v3.2", .prompt = ">>>",
     .text = "get weather",
     .content = "get weather"},
    {.format = "gemma",
     .text = "Let me see.\n```tool_code\nget_weather(city=\"Paris\", n=3)\n```",
     .content = "Let me see.",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "gemma",
     .text = "[get_weather(city=\"Paris\", n=3), add_two(city='a \"b\"\\nc')]",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "gemma",
     .text = "```json\n{\"name\": \"get_weather\", \"parameters\": {\"city\": "
             "\"Paris\", \"n\": 3}}\n```",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "gemma",
     .text = "```json\n{\"name\": \"Bob\", \"parameters\": {}}\n```",
     .content = "```json\n{\"name\": \"Bob\", \"parameters\": {}}\n```"},
    {.format = "gemma4",
     .text = "<|channel>thought\nhm<channel|><|tool_call>call:get_weather{city:<|\"|>"
             "Paris<|\"|>,n:3}<tool_call|><|tool_call>call:add_two{city:<|\"|>a "
             "\"b\"\nc<|\"|>}<tool_call|>",
     .reasoning = "hm",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "gemma4",
     .text = "<|tool_call>call:f{a:[1,<|\"|>}<|\"|>"
             ",{b:true,c:null}],d:-1.5e3}<tool_call|>yes",
     .content = "yes",
     .calls = "f {\"a\": [1, \"}\", {\"b\": true, \"c\": null}], \"d\": -1.5e3}"},
    {.format = "gemma4",
     .text = "<|tool_call>call:f{a:b c}<tool_call|>",
     .content = "<|tool_call>call:f{a:b c}<tool_call|>"},
    {.format = "functiongemma",
     .text = "<start_function_call>call:get_weather{city:<escape>Paris<escape>"
             ",n:3}<end_function_call><start_function_response>",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "generic",
     .text = "{\"tool_call\": {\"name\": \"get_weather\", \"arguments\": {\"city\": "
             "\"Paris\", \"n\": 3}}}",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "generic",
     .text = "{\"tool_calls\": [{\"name\": \"get_weather\", \"arguments\": "
             "{\"city\": \"Paris\", \"n\": 3}}, {\"name\": \"add_two\", "
             "\"arguments\": {\"city\": \"a \\\"b\\\"\\nc\"}}]}",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "generic",
     .text = "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", "
             "\"n\": 3}}",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "generic",
     .text = "{\"name\": \"Bob\", \"arguments\": {}}",
     .content = "{\"name\": \"Bob\", \"arguments\": {}}"},
    {.format = "generic",
     .text = "{\"response\": \"hi\"}",
     .content = "{\"response\": \"hi\"}"},
    {.format = "gigachat",
     .text = "CONTENT<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": "
             "\"get_weather\", \"arguments\": {\"city\": \"Paris\", \"n\": 3}}",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "gigachat",
     .text = "CONTENT<|function_call|>{\"name\": \"get_weather\", \"arguments\": "
             "{\"city\": \"Paris\", \"n\": 3}}",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "glm4",
     .text = "\n<think>hm</think>\nCONTENT\n<tool_call>get_weather\n<arg_key>"
             "city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>n</arg_key>\n"
             "<arg_value>3</arg_value>\n</tool_call>\n<tool_call>add_two\n<arg_key>"
             "city</arg_key>\n<arg_value>a \"b\"\nc</arg_value>\n</tool_call>",
     .reasoning = "hm",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "glm4",
     .text = "<tool_call>get_weather</tool_call>",
     .calls = "get_weather {}"},
    {.format = "glm4",
     .text = "<tool_call>hello there",
     .content = "<tool_call>hello there"},
    {.format = "glm4",
     .text = "<tool_call>get_weather<arg_key>city</arg_key><arg_value>007</arg_value>"
             "<arg_key>n</arg_key><arg_value>many</arg_value><arg_key>o</arg_key>"
             "<arg_value>{'a': [1, None]}</arg_value><arg_key>new</arg_key>"
             "<arg_value>true</arg_value></tool_call>",
     .calls = "get_weather {\"city\": \"007\", \"n\": \"many\", \"o\": {\"a\": [1, "
              "null]}, \"new\": true}"},
    {.format = "granite",
     .text = "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": "
             "\"Paris\", \"n\": 3}}, {\"name\": \"add_two\", \"arguments\": "
             "{\"city\": \"a \\\"b\\\"\\nc\"}}]",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "granite",
     .text = "<think>hm</think><response>yes</response>",
     .reasoning = "hm",
     .content = "yes"},
    {.format = "granite",
     .text = "a <response>",
     .content = "a <response>"},
    {.format = "harmony", .prompt = "<|start|>assistant",
     .text = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>"
             "commentary<|message|>CONTENT<|end|><|start|>assistant<|channel|>"
             "commentary to=functions.get_weather <|constrain|>json<|message|>"
             "{\"city\": \"Paris\", \"n\": 3}<|call|>",
     .reasoning = "hm",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "harmony", .prompt = "<|start|>assistant",
     .text = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant "
             "to=functions.get_weather<|channel|>commentary json<|message|>"
             "{\"city\": \"Paris\", \"n\": 3}<|end|><|start|>assistant "
             "to=functions.add_two<|channel|>commentary json<|message|>{\"city\": "
             "\"a \\\"b\\\"\\nc\"}",
     .reasoning = "hm",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "harmony", .prompt = "x<|start|>assistant",
     .text = "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>"
             "analysis<|message|>b<|end|><|start|>assistant<|channel|>"
             "final<|message|>yes",
     .reasoning = "a\nb",
     .content = "yes"},
    {.format = "harmony", .prompt = "<|start|>assistant",
     .text = "<|channel|>final<|message|>no to=functions.f",
     .content = "no to=functions.f"},
    {.format = "harmony",
     .text = "<|channel|>analysis to=browser.search code<|message|>{\"q\": 1}<|call|>",
     .calls = "browser.search {\"q\": 1}"},
    {.format = "harmony", .prompt = "<|start|>assistant",
     .text = " to=functions.f<|channel|>commentary json<|message|>not JSON",
     .content = " to=functions.f<|channel|>commentary json<|message|>not JSON"},
    {.format = "hermes",
     .text = "CONTENT\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
             "{\"city\": \"Paris\", \"n\": 3}}\n</tool_call>\n<tool_call>\n"
             "{\"name\": \"add_two\", \"arguments\": {\"city\": \"a "
             "\\\"b\\\"\\nc\"}}\n</tool_call>",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "hermes",
     .text = "<think>\nhm\n</think>\n\n<tool_call>\n{\"name\": \"get_weather\", "
             "\"arguments\": {\"city\": \"Paris\", \"n\": 3}}\n</tool_call>",
     .reasoning = "hm",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "hermes",
     .text = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
             "\"Paris\", \"n\": 3}}\n</tool_call>\n\nafter",
     .content = "after",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "hermes",
     .text = "a\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
             "\"Paris\", \"n\": 3}}\n</tool_call>\n\nafter\n",
     .content = "a\n\nafter\n",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "hermes",
     .text = "<tool_call>{\"arguments\": {\"a\": \"}</tool_call>{\"}, \"id\": \"x\", "
             "\"name\": \"f\"}</tool_call>",
     .calls = "f {\"a\": \"}</tool_call>{\"}"},
    {.format = "hermes",
     .text = "<tool_call>{\"id\": \"call-9\", \"name\": \"f\", \"arguments\": "
             "\"{\\\"a\\\": 1}\"}</tool_call>",
     .calls = "f {\"a\": 1}",
     .ids = "call-9 "},
    {.format = "hermes",
     .text = "<tool_call>{\"type\": \"function\", \"function\": {\"name\": \"f\", "
             "\"arguments\": {\"name\": \"g\"}}}</tool_call>",
     .calls = "f {\"name\": \"g\"}"},
    {.format = "hermes",
     .text = "<tool_call>{\"name\": \"unknown\", \"arguments\": null}</tool_call>",
     .calls = "unknown {}"},
    {.format = "hermes",
     .text = "<tool_call>{\"name\": \"f\"}",
     .calls = "f {}"},
    {.format = "hermes",
     .text = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"x\n"
             "y\tz\"}}</tool_call>",
     .calls = "f {\"a\": \"x\\ny\\tz\"}"},
    {.format = "hermes",
     .text = "<tool_call>[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", "
             "\"arguments\": {}}]</tool_call>",
     .calls = "f {}\ng {}"},
    {.format = "hermes",
     .text = "<tool_call>{\"name\": \"f\", \"arguments\": {}}{\"name\": \"g\", "
             "\"arguments\": {}}</tool_call>",
     .calls = "f {}\ng {}"},
    {.format = "hermes", .single = true,
     .text = "a<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
             "\"Paris\", \"n\": 3}}\n</tool_call><tool_call>\n{\"name\": "
             "\"add_two\", \"arguments\": {\"city\": \"a \\\"b\\\"\\nc\"}}\n"
             "</tool_call> b",
     .content = "a",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "hermes",
     .text = "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", "
             "\"n\": 3}}",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "hermes",
     .text = "```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
             "\"Paris\", \"n\": 3}}\n```",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "hermes",
     .text = "```json\n{\"name\": \"Bob\", \"age\": 3}\n```",
     .content = "```json\n{\"name\": \"Bob\", \"age\": 3}\n```"},
    {.format = "hermes",
     .text = "{\"name\": \"Bob\", \"arguments\": {\"a\": 1}}",
     .content = "{\"name\": \"Bob\", \"arguments\": {\"a\": 1}}"},
    {.format = "hermes",
     .text = "<tool_call>",
     .content = "<tool_call>"},
    {.format = "hermes",
     .text = "<tool_call>\n",
     .content = "<tool_call>\n"},
    {.format = "hermes",
     .text = "<tool_call>{",
     .content = "<tool_call>{"},
    {.format = "hermes",
     .text = "<tool_call>{}</tool_call>",
     .content = "<tool_call>{}</tool_call>"},
    {.format = "hermes",
     .text = "<tool_call>[]</tool_call>",
     .content = "<tool_call>[]</tool_call>"},
    {.format = "hermes",
     .text = "<tool_call> x </tool_call> y",
     .content = "<tool_call> x </tool_call> y"},
    {.format = "hermes",
     .text = "<tool_call>{\"name\": 3}</tool_call>",
     .content = "<tool_call>{\"name\": 3}</tool_call>"},
    {.format = "hermes",
     .text = "<tool_call>{\"name\": \"\"}</tool_call>",
     .content = "<tool_call>{\"name\": \"\"}</tool_call>"},
    {.format = "hermes",
     .text = "<tool_call>{\"arguments\": {}}</tool_call>",
     .content = "<tool_call>{\"arguments\": {}}</tool_call>"},
    {.format = "hermes",
     .text = "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
     .content = "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>"},
    {.format = "hermes",
     .text = "<tool_call>{\"name\": \"f\", \"arguments\": \"x\"}</tool_call>",
     .content = "<tool_call>{\"name\": \"f\", \"arguments\": \"x\"}</tool_call>"},
    {.format = "hermes",
     .text = "<tool_call>{\"name\" \"f\"}",
     .content = "<tool_call>{\"name\" \"f\"}"},
    {.format = "hermes",
     .text = "</tool_call>",
     .content = "</tool_call>"},
    {.format = "hermes",
     .text = "use <tool_call> tags",
     .content = "use <tool_call> tags"},
    {.format = "hermes",
     .text = "<tool_call>{\"name\": \"f\", x",
     .content = "<tool_call>{\"name\": \"f\", x"},
    {.format = "hermes",
     .text = "a <tool_call",
     .content = "a <tool_call"},
    {.format = "hermes",
     .text = "{",
     .content = "{"},
    {.format = "hermes",
     .text = "[1, 2]",
     .content = "[1, 2]"},
    {.format = "hermes",
     .text = "{\"a\": 1}",
     .content = "{\"a\": 1}"},
    {.format = "hermes",
     .text = " [ x",
     .content = " [ x"},
    {.format = "hermes",
     .text = "<tool_call>oops <tool_call>\n{\"name\": \"get_weather\", "
             "\"arguments\": {\"city\": \"Paris\", \"n\": 3}}\n</tool_call>",
     .content = "<tool_call>oops",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "hermes",
     .text = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": tru}}</tool_call>",
     .content = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": "
                "tru}}</tool_call>",
     .live_calls = "f {\"a\": tru",
     .live_content = "}}</tool_call>"},
    {.format = "hermes",
     .text = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"long",
     .content = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"long",
     .live_calls = "f {\"a\": \"long",
     .live_content = ""},
    {.format = "hermes",
     .text = "<tool_call>[{\"name\": \"f\", \"arguments\": {}}, oops]</tool_call>",
     .content = ", oops]</tool_call>",
     .calls = "f {}"},
    {.format = "hunyuan",
     .text = "CONTENT<tool_calls:opensource>\n<tool_call:opensource>"
             "get_weather<tool_sep:opensource>\n<arg_key:opensource>"
             "city</arg_key:opensource>\n<arg_value:opensource>"
             "Paris</arg_value:opensource>\n<arg_key:opensource>"
             "n</arg_key:opensource>\n<arg_value:opensource>3</arg_value:opensource>"
             "\n</tool_call:opensource>\n<tool_call:opensource>"
             "add_two<tool_sep:opensource>\n<arg_key:opensource>"
             "city</arg_key:opensource>\n<arg_value:opensource>a \"b\"\n"
             "c</arg_value:opensource>\n</tool_call:opensource>\n"
             "</tool_calls:opensource>",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "kimi-k2",
     .text = "CONTENT<|tool_calls_section_begin|><|tool_call_begin|>"
             "functions.get_weather:0<|tool_call_argument_begin|>{\"city\": "
             "\"Paris\", \"n\": 3}<|tool_call_end|><|tool_call_begin|>"
             "functions.add_two:1<|tool_call_argument_begin|>{\"city\": \"a "
             "\\\"b\\\"\\nc\"}<|tool_call_end|><|tool_calls_section_end|>",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}",
     .ids = "functions.get_weather:0 functions.add_two:1 "},
    {.format = "kimi-k2",
     .text = "<think>hm<|tool_calls_section_begin|><|tool_call_begin|>"
             "functions.get_weather:0<|tool_call_argument_begin|>{\"city\": "
             "\"Paris\", \"n\": 3}<|tool_call_end|>",
     .reasoning = "hm",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "kimi-k2",
     .text = "<|tool_calls_section_begin|>x",
     .content = "<|tool_calls_section_begin|>x"},
    {.format = "kimi-k3", .begin = CHAT_BEGIN_REASONING,
     .text = "hm<|close|>think<|sep|><|open|>response<|sep|>CONTENT<|close|>"
             "response<|sep|><|open|>tools<|sep|><|open|>call tool=\"get_weather\" "
             "index=\"1\"<|sep|><|open|>argument key=\"city\" type=\"string\"<|sep|>"
             "Paris<|close|>argument<|sep|><|open|>argument key=\"n\" "
             "type=\"number\"<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|>"
             "<|open|>call tool=\"add_two\" index=\"2\"<|sep|><|open|>argument "
             "key=\"city\" type=\"string\"<|sep|>a \"b\"\nc<|close|>argument<|sep|>"
             "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>"
             "<|end_of_msg|>",
     .reasoning = "hm",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "lfm2",
     .text = "CONTENT<|tool_call_start|>[get_weather(city='Paris', n=3), "
             "add_two(city='a \"b\"\\nc')]<|tool_call_end|>",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "lfm2",
     .text = "<|tool_call_start|>[f(a=True, b=None, c={\"x\": [1, (2, "
             "\"\\u00e9\")]}, d=-1.5)]<|tool_call_end|>yes",
     .content = "yes",
     .calls = "f {\"a\": true, \"b\": null, \"c\": {\"x\": [1, [2, \"é\"]]}, \"d\": "
              "-1.5}"},
    {.format = "lfm2",
     .text = "<|tool_call_start|>[f(1)]<|tool_call_end|>",
     .content = "<|tool_call_start|>[f(1)]<|tool_call_end|>"},
    {.format = "llama3",
     .text = "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\", "
             "\"n\": 3}}",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "llama3",
     .text = "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\", "
             "\"n\": 3}}; {\"name\": \"add_two\", \"parameters\": {\"city\": \"a "
             "\\\"b\\\"\\nc\"}}",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "llama3",
     .text = "<|python_tag|>{\"type\": \"function\", \"name\": \"get_weather\", "
             "\"parameters\": {\"city\": \"Paris\", \"n\": 3}}",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "llama3",
     .text = "<|python_tag|>brave_search.call(query=\"x y\")",
     .calls = "brave_search {\"query\": \"x y\"}"},
    {.format = "llama3",
     .text = "[get_weather(city=\"Paris\", n=3), add_two(city=\"a \\\"b\\\"\\nc\")]",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "llama3",
     .text = "<|python_start|>[get_weather(city=\"Paris\", n=3)]<|python_end|>",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "llama3",
     .text = "{\"name\": \"Bob\", \"parameters\": {}}",
     .content = "{\"name\": \"Bob\", \"parameters\": {}}"},
    {.format = "llama3",
     .text = "[1] is a footnote",
     .content = "[1] is a footnote"},
    {.format = "minicpm5",
     .text = "CONTENT\n<function name=\"get_weather\"><param name=\"city\">"
             "Paris</param><param name=\"n\">3</param></function>\n<function "
             "name=\"add_two\"><param name=\"city\"><![CDATA[a \"b\"\nc]]></param>"
             "</function>",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "minicpm5",
     .text = "<function name=\"get_weather\"><param name=\"city\">7</param><param "
             "name=\"n\">7</param></function>",
     .calls = "get_weather {\"city\": \"7\", \"n\": 7}"},
    {.format = "minimax-m2", .begin = CHAT_BEGIN_REASONING,
     .text = "hm\n</think>\n\nCONTENT\n<minimax:tool_call>\n<invoke "
             "name=\"get_weather\">\n<parameter name=\"city\">Paris</parameter>\n"
             "<parameter name=\"n\">3</parameter>\n</invoke>\n<invoke "
             "name=\"add_two\">\n<parameter name=\"city\">a \"b\"\nc</parameter>\n"
             "</invoke>\n</minimax:tool_call>",
     .reasoning = "hm",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "mistral",
     .text = "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": "
             "\"Paris\", \"n\": 3}, \"id\": \"call00000\"}, {\"name\": \"add_two\", "
             "\"arguments\": {\"city\": \"a \\\"b\\\"\\nc\"}, \"id\": \"call10000\"}]",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}",
     .ids = "Vxtdecca2 sDI6je5VX "},
    {.format = "mistral",
     .text = "CONTENT[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Paris\", \"n\": "
             "3}[TOOL_CALLS]add_two[ARGS]{\"city\": \"a \\\"b\\\"\\nc\"}",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "mistral",
     .text = "[TOOL_CALLS]get_weather[CALL_ID]abc123xyz[ARGS]{\"city\": \"Paris\", "
             "\"n\": 3}",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}",
     .ids = "abc123xyz "},
    {.format = "mistral",
     .text = "[TOOL_CALLS]get_weather{\"city\": \"Paris\", \"n\": 3}",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "mistral",
     .text = "[TOOL_CALLS] nothing",
     .content = "[TOOL_CALLS] nothing"},
    {.format = "mistral",
     .style = "[THINK][/THINK]",
     .text = "[THINK]hm[/THINK]yes",
     .reasoning = "hm",
     .content = "yes"},
    {.format = "nemotron",
     .text = "<TOOLCALL>[{\"name\": \"get_weather\", \"arguments\": {\"city\": "
             "\"Paris\", \"n\": 3}}, {\"name\": \"add_two\", \"arguments\": "
             "{\"city\": \"a \\\"b\\\"\\nc\"}}]</TOOLCALL>",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "phi4",
     .text = "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": "
             "\"Paris\", \"n\": 3}}]<|/tool_call|>",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "phi4",
     .text = "functools[{\"name\": \"get_weather\", \"arguments\": {\"city\": "
             "\"Paris\", \"n\": 3}}, {\"name\": \"add_two\", \"arguments\": "
             "{\"city\": \"a \\\"b\\\"\\nc\"}}]",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "phi4",
     .text = "functools are good",
     .content = "functools are good"},
    {.format = "qwen3-coder",
     .text = "CONTENT\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\n"
             "Paris\n</parameter>\n<parameter=n>\n3\n</parameter>\n</function>\n"
             "</tool_call>\n<tool_call>\n<function=add_two>\n<parameter=city>\na "
             "\"b\"\nc\n</parameter>\n</function>\n</tool_call>",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "qwen3-coder", .begin = CHAT_BEGIN_REASONING,
     .text = "hm\n</think>\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\n"
             "Paris\n</parameter>\n<parameter=n>\n3\n</parameter>\n</function>\n"
             "</tool_call>\n<tool_call>\n<function=add_two>\n<parameter=city>\na "
             "\"b\"\nc\n</parameter>\n</function>\n</tool_call>",
     .reasoning = "hm",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "qwen3-coder",
     .text = "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n"
             "<parameter=n>\n3\n</parameter>\n</function>\n</tool_call>",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "qwen3-coder",
     .text = "<tool_call>\n<function=get_weather>\n<parameter=city>\n\n a < b\n\n\n"
             "</parameter>\n</function>\n</tool_call>",
     .calls = "get_weather {\"city\": \"\\n a < b\\n\\n\"}"},
    {.format = "qwen3-coder",
     .text = "<tool_call>\n<function=get_weather>\n</function>\n</tool_call>",
     .calls = "get_weather {}"},
    {.format = "qwen3-coder",
     .text = "<tool_call>\n<function=get_weather>\nx",
     .content = "<tool_call>\n<function=get_weather>\nx"},
    {.format = "qwen3-coder",
     .text = "<tool_call>\n<function=get_weather>\n<parameter=city>\nPar",
     .content = "<tool_call>\n<function=get_weather>\n<parameter=city>\nPar",
     .live_calls = "get_weather {\"city\": \"Par",
     .live_content = ""},
    {.format = "seed",
     .text = "CONTENT\n\n<seed:tool_call>\n<function=get_weather>\n<parameter=city>"
             "Paris</parameter>\n<parameter=n>3</parameter>\n</function>\n"
             "</seed:tool_call>\n<seed:tool_call>\n<function=add_two>\n"
             "<parameter=city>a \"b\"\nc</parameter>\n</function>\n</seed:tool_call>",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "solar", .prompt = "<|begin|>assistant",
     .text = "<|think|>hm<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>"
             "c1<|tool_call:name|>get_weather<|tool_call:args|>{\"city\": \"Paris\", "
             "\"n\": 3}<|tool_call:end|><|tool_call:begin|>c2<|tool_call:name|>"
             "add_two<|tool_call:args|>{\"city\": \"a "
             "\\\"b\\\"\\nc\"}<|tool_call:end|><|calls|>",
     .reasoning = "hm",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}",
     .ids = "c1 c2 "},
    {.format = "solar", .prompt = "<|begin|>assistant",
     .text = "<|think|>hm<|end|><|begin|>assistant<|content|>yes<|end|>",
     .reasoning = "hm",
     .content = "yes"},
    {.format = "tool-calls",
     .text = "<tool_calls>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
             "\"Paris\", \"n\": 3}}\n{\"name\": \"add_two\", \"arguments\": "
             "{\"city\": \"a \\\"b\\\"\\nc\"}}\n</tool_calls>",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}\nadd_two {\"city\": \"a "
              "\\\"b\\\"\\nc\"}"},
    {.format = "tool-calls",
     .text = "CONTENT\n<tool_calls>[{\"name\": \"get_weather\", \"arguments\": "
             "{\"city\": \"Paris\", \"n\": 3}}]</tool_calls>",
     .content = "CONTENT",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "zyphra",
     .text = "<zyphra_tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n"
             "</parameter>\n<parameter=n>\n3\n</parameter>\n</function>\n"
             "</zyphra_tool_call>",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
    {.format = "zyphra",
     .text = "<zyphra_tool_call>{\"name\": \"get_weather\", \"arguments\": "
             "{\"city\": \"Paris\", \"n\": 3}}</zyphra_tool_call>",
     .calls = "get_weather {\"city\": \"Paris\", \"n\": 3}"},
};

#endif

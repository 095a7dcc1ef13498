/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.c: strftime_now: the date on the caller's clock, English names whatever the locale. */
#include <stdio.h>

#include "text/jinja/run.h"

struct date {
    int64_t year;
    unsigned month, day, weekday, yearday, hour, minute, second; /* month and day from 1 */
};

/* Days since 1970-01-01 to a date of the proleptic Gregorian calendar, in eras of 400 years that
 * begin in March (Howard Hinnant, chrono-Compatible Low-Level Date Algorithms). */
static struct date date_of(int64_t seconds) {
    int64_t days = seconds / 86400, rest = seconds % 86400;
    if (rest < 0) {
        rest += 86400;
        days--;
    }
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
    unsigned doe = (unsigned)(z - era * 146097);
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    struct date d = {.day = doy - (153 * mp + 2) / 5 + 1, .month = mp < 10 ? mp + 3 : mp - 9};
    d.year = (int64_t)yoe + era * 400 + (d.month <= 2);
    bool leap = (d.year % 4 == 0 && d.year % 100 != 0) || d.year % 400 == 0;
    d.yearday = d.month > 2 ? doy + 60 + leap : doy - 305;
    d.weekday = (unsigned)(((days + 4) % 7 + 7) % 7);
    d.hour = (unsigned)(rest / 3600);
    d.minute = (unsigned)(rest / 60 % 60);
    d.second = (unsigned)(rest % 60);
    return d;
}

/* The text of one directive; false: not one we know. `pad` is off after %-. */
static bool directive(char c, bool pad, const struct date *d, char *out, size_t size) {
    static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday",
                                       "Friday", "Saturday"};
    static const char *const months[] = {"January", "February", "March", "April", "May", "June",
                                         "July", "August", "September", "October", "November",
                                         "December"};
    const char *two = pad ? "%02u" : "%u";
    const char *day = days[d->weekday], *month = months[d->month - 1];
    unsigned hour12 = d->hour % 12 ? d->hour % 12 : 12;
    switch (c) {
    case 'Y': snprintf(out, size, "%lld", (long long)d->year); return true;
    case 'y': snprintf(out, size, two, (unsigned)(d->year % 100)); return true;
    case 'm': snprintf(out, size, two, d->month); return true;
    case 'd': snprintf(out, size, two, d->day); return true;
    case 'e': snprintf(out, size, pad ? "%2u" : "%u", d->day); return true;
    case 'H': snprintf(out, size, two, d->hour); return true;
    case 'I': snprintf(out, size, two, hour12); return true;
    case 'M': snprintf(out, size, two, d->minute); return true;
    case 'S': snprintf(out, size, two, d->second); return true;
    case 'j': snprintf(out, size, pad ? "%03u" : "%u", d->yearday); return true;
    case 'w': snprintf(out, size, "%u", d->weekday); return true;
    case 'u': snprintf(out, size, "%u", d->weekday ? d->weekday : 7); return true;
    case 'p': snprintf(out, size, "%s", d->hour < 12 ? "AM" : "PM"); return true;
    case 'A': snprintf(out, size, "%s", day); return true;
    case 'a': snprintf(out, size, "%.3s", day); return true;
    case 'B': snprintf(out, size, "%s", month); return true;
    case 'b': case 'h': snprintf(out, size, "%.3s", month); return true;
    case 'F':
        snprintf(out, size, "%lld-%02u-%02u", (long long)d->year, d->month, d->day);
        return true;
    case 'T': snprintf(out, size, "%02u:%02u:%02u", d->hour, d->minute, d->second); return true;
    case 'R': snprintf(out, size, "%02u:%02u", d->hour, d->minute); return true;
    case 'D': case 'x':
        snprintf(out, size, "%02u/%02u/%02u", d->month, d->day, (unsigned)(d->year % 100));
        return true;
    case 'X': snprintf(out, size, "%02u:%02u:%02u", d->hour, d->minute, d->second); return true;
    case 'c':
        snprintf(out, size, "%.3s %.3s %2u %02u:%02u:%02u %lld", day, month, d->day, d->hour,
                 d->minute, d->second, (long long)d->year);
        return true;
    case 'Z': case 'z': out[0] = 0; return true; /* a naive datetime has no zone */
    case 'f': snprintf(out, size, "000000"); return true;
    case 'n': snprintf(out, size, "\n"); return true;
    case 't': snprintf(out, size, "\t"); return true;
    case '%': snprintf(out, size, "%%"); return true;
    default: return false;
    }
}

bool global_strftime_now(struct run *r, const struct call *call, struct value *out) {
    if (call->arg[0].kind != VALUE_STRING)
        return jinja_fail(r, "strftime() argument must be str, not %s",
                          jinja_type_name(call->arg[0]));
    const struct text *t = call->arg[0].text;
    bool trusted = text_all_trusted(t);
    double now = r->now > -6e10 && r->now < 2.5e11 ? r->now : 0; /* years 68 to 9892 */
    struct date date = date_of((int64_t)now);
    if (!jinja_capture(r)) return false;
    for (size_t i = 0; i < t->n; i++) {
        char text[64];
        if (t->p[i] != '%') {
            if (!jinja_put_slice(r, t, i, 1)) return false;
            continue;
        }
        bool pad = !(i + 1 < t->n && t->p[i + 1] == '-');
        i += pad ? 1 : 2;
        if (i >= t->n || !directive(t->p[i], pad, &date, text, sizeof text))
            return jinja_fail_status(r, OB_ERR_UNSUPPORTED, "unknown directive in strftime_now");
        if (!jinja_put(r, text, strlen(text), trusted)) return false;
    }
    return jinja_captured(r, out);
}

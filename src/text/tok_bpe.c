/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_bpe.c: byte pair encoding by ranked merges (Sennrich et al. 2016). Symbols start as bytes in
 * the byte-level alphabet (GPT-2 and its heirs), or as characters with byte fallback (in a
 * tokenizer.json made from a SentencePiece model). Merges are a hash table by pairs of tokens. */
#include "base/error.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "text/tok_impl.h"

static uint32_t first_slot(const struct tok *tok, int32_t left, int32_t right) {
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (uint32_t)rng_mix(key) & tok->pair_mask;
}

static uint32_t slot_of(const struct tok *tok, int32_t left, int32_t right) {
    uint32_t i = first_slot(tok, left, right);
    while (tok->pair[i].id >= 0 && (tok->pair[i].left != left || tok->pair[i].right != right))
        i = (i + 1) & tok->pair_mask;
    return i;
}

ob_status tok_pairs_init(struct tok *tok, uint64_t n, ob_error *error) {
    uint64_t size = 16;
    if (n > UINT32_MAX / 4) return error_set(error, OB_ERR_LIMIT, "too many merges");
    tok->ranks = (uint32_t)n;
    while (size < n + n / 2) size *= 2;
    tok->pair = arena_array(&tok->arena, size, sizeof *tok->pair);
    if (!tok->pair) return error_memory(error, "merges", size * sizeof *tok->pair);
    tok->pair_mask = (uint32_t)(size - 1);
    for (uint64_t i = 0; i < size; i++) tok->pair[i].id = -1;
    return OB_OK;
}

/* The token that left and right make. Trained vocabularies have them in the order of the merges, so
 * the one after the last is looked at first. */
static int32_t find_both(struct tok *tok, struct str left, struct str right, struct str both) {
    const struct vocab *vocab = &tok->vocab;
    uint32_t id = tok->expected;
    if (vocab->twins || id >= vocab->n || vocab->kind[id] == TOK_NONE ||
        vocab->text[id].n != left.n + right.n || memcmp(vocab->text[id].p, left.p, left.n) != 0 ||
        memcmp(vocab->text[id].p + left.n, right.p, right.n) != 0) {
        int32_t found = vocab_find(vocab, both);
        if (found < 0) return -1;
        id = (uint32_t)found;
    }
    tok->expected = id + 1;
    return (int32_t)id;
}

/* The table is larger than the cache and is filled in no order: a pair waits until its slot is
 * there. */
static void put_later(struct tok *tok, struct tok_pair pair) {
    struct tok_pair *wait = &tok->waiting[tok->waiting_n++ % TOK_WAITING];
    if (tok->waiting_n > TOK_WAITING) tok->pair[slot_of(tok, wait->left, wait->right)] = *wait;
    *wait = pair;
    __builtin_prefetch(&tok->pair[first_slot(tok, pair.left, pair.right)], 1);
}

void tok_pairs_end(struct tok *tok) {
    uint32_t n = tok->waiting_n;
    for (uint32_t i = n > TOK_WAITING ? n - TOK_WAITING : 0; i < n; i++) {
        const struct tok_pair *wait = &tok->waiting[i % TOK_WAITING];
        tok->pair[slot_of(tok, wait->left, wait->right)] = *wait;
    }
    tok->waiting_n = 0;
}

ob_status tok_pairs_put(struct tok *tok, uint32_t rank, struct str left, struct str right,
                        struct buf *scratch, ob_error *error) {
    buf_clear(scratch);
    struct str on = tok->goes_on;
    buf_add(scratch, left.p, left.n);
    struct str rest = right;
    if (on.n && right.n >= on.n) { /* inside the new token nothing goes on */
        rest.p += on.n;
        rest.n -= on.n;
    }
    buf_add(scratch, rest.p, rest.n);
    if (scratch->failed) return error_memory(error, "merges", left.n + right.n);
    struct str both = {scratch->p, scratch->n};
    int32_t l = vocab_find(&tok->vocab, left), r = vocab_find(&tok->vocab, right),
            id = find_both(tok, left, rest, both);
    if (l < 0 || r < 0 || id < 0)
        return error_set(error, OB_ERR_FORMAT, "merge %u: \"%.*s\" is not in the vocabulary", rank,
                         STR_ARG(l < 0   ? left
                                 : r < 0 ? right
                                         : both));
    if (!vocab_is_data(&tok->vocab, id)) return OB_OK;
    put_later(tok, (struct tok_pair){l, r, id, rank});
    return OB_OK;
}

static bool find(const void *ctx, const struct merge *merge, uint32_t left, uint32_t right,
                 struct merge_rule *rule) {
    const struct tok *tok = ctx;
    const struct merge_cell *cell = merge->cell;
    const struct tok_pair *pair = &tok->pair[slot_of(tok, cell[left].id, cell[right].id)];
    *rule = (struct merge_rule){pair->rank, pair->id};
    return pair->id >= 0;
}

/* The piece as one token, -1 if it is none. */
static int32_t whole(const struct tok *tok, struct tok_work *work, struct str piece) {
    if (!tok->byte_level) return vocab_find_data(&tok->vocab, piece);
    if (piece.n > tok->vocab.longest) return -1; /* a byte is at least a byte of its token */
    buf_clear(&work->piece);
    for (size_t i = 0; i < piece.n; i++) {
        char text[4];
        buf_add(&work->piece, text, utf8_encode(tok_byte_char((uint8_t)piece.p[i]), text));
    }
    return vocab_find_data(&tok->vocab, (struct str){work->piece.p, work->piece.n});
}

/* A byte that the vocabulary lacks: nothing, as the reference, but one that no UTF-8 has becomes
 * U+FFFD, as where the reference gets its text. Every vocabulary we know has all bytes of UTF-8. */
static bool push_lacking(const struct tok *tok, struct tok_work *work, uint8_t byte, size_t at) {
    static const uint8_t replacement[3] = {0xef, 0xbf, 0xbd};
    if (byte != 0xc0 && byte != 0xc1 && byte < 0xf5) return true;
    for (int i = 0; i < 3; i++) {
        int32_t id = tok->byte_id[replacement[i]];
        if (id >= 0 && !merge_push(&work->merge, id, at, 1)) return false;
    }
    return true;
}

static bool push_bytes(const struct tok *tok, struct tok_work *work, struct str piece) {
    for (size_t i = 0; i < piece.n; i++) {
        uint8_t byte = (uint8_t)piece.p[i];
        int32_t id = tok->byte_id[byte];
        if (!(id < 0 ? push_lacking(tok, work, byte, i) : merge_push(&work->merge, id, i, 1)))
            return false;
    }
    return true;
}

/* What unknown characters become is put before the next known one, so after bytes that come between
 * them: as the reference does. */
struct unknown {
    bool held;
    size_t at, n;
};

static bool put_unknown(const struct tok *tok, struct tok_work *work, struct unknown *u) {
    bool ok = !u->held || merge_push(&work->merge, tok->unk, u->at, u->n);
    u->held = false;
    return ok;
}

/* A character as the tokens of words spell it. */
static struct str spelled(const struct tok *tok, struct tok_work *work, struct str c, bool first,
                          bool last) {
    bool on = !first && tok->goes_on.n, end = last && tok->ends.n;
    if (!on && !end) return c;
    buf_clear(&work->piece);
    if (on) buf_add(&work->piece, tok->goes_on.p, tok->goes_on.n);
    buf_add(&work->piece, c.p, c.n);
    if (end) buf_add(&work->piece, tok->ends.p, tok->ends.n);
    return (struct str){work->piece.p, work->piece.n};
}

/* A character: its token, else its bytes, else the unknown token (or nothing, as the reference). */
static bool push_char(const struct tok *tok, struct tok_work *work, struct str piece, size_t at,
                      size_t n, struct unknown *u) {
    struct merge *m = &work->merge;
    struct str c = spelled(tok, work, (struct str){piece.p + at, n}, at == 0, at + n == piece.n);
    int32_t id = vocab_find_data(&tok->vocab, c);
    if (id >= 0) return put_unknown(tok, work, u) && merge_push(m, id, at, n);
    bool bytes = tok->byte_fallback;
    for (size_t i = 0; bytes && i < c.n; i++) bytes = tok->byte_id[(uint8_t)c.p[i]] >= 0;
    if (bytes) {
        for (size_t i = 0; i < c.n; i++)
            if (!merge_push(m, tok->byte_id[(uint8_t)c.p[i]], at + (i < n ? i : n), i < n))
                return false;
        return true;
    }
    if (tok->unk < 0) return true;
    if (u->held && tok->fuse_unk) {
        u->n += n;
        return true;
    }
    if (!put_unknown(tok, work, u)) return false;
    *u = (struct unknown){true, at, n};
    return true;
}

static bool encode_word(const struct tok *tok, struct tok_work *work, struct str piece) {
    if (tok->whole_words) {
        int32_t id = whole(tok, work, piece);
        if (id >= 0) return tok_work_put(work, id);
    }
    work->merge.n = 0;
    if (tok->byte_level) {
        if (!push_bytes(tok, work, piece)) return false;
    } else {
        uint32_t code;
        struct unknown unknown = {0};
        for (size_t at = 0, n; at < piece.n; at += n) {
            n = utf8_decode(piece.p + at, piece.n - at, &code);
            if (!push_char(tok, work, piece, at, n, &unknown)) return false;
        }
        if (!put_unknown(tok, work, &unknown)) return false;
    }
    if (work->merge.n == 0) return true;
    if (!merge_run(&work->merge, tok->ranks, find, tok)) return false;
    for (size_t i = 0; i < work->merge.n; i += work->merge.cell[i].span)
        if (!tok_work_put(work, work->merge.cell[i].id)) return false;
    return true;
}

bool tok_bpe_encode(const struct tok *tok, struct tok_work *work, struct str piece) {
    const struct memo_word *known = memo_find(&work->memo, piece);
    if (known) return tok_work_add(work, known->id, known->ids);
    size_t from = work->n;
    if (!encode_word(tok, work, piece)) return false;
    if (work->n > from) memo_put(&work->memo, piece, work->id + from, work->n - from);
    return true;
}

static bool space_after_first(struct str text, size_t *at) {
    /* "left right"; a token may itself start with a space. */
    const char *space = text.n > 1 ? memchr(text.p + 1, ' ', text.n - 1) : NULL;
    if (space) *at = (size_t)(space - text.p);
    return space != NULL;
}

static ob_status read_merges(struct tok *tok, const struct gguf *gguf, ob_error *error) {
    static const char key[] = "tokenizer.ggml.merges";
    const struct gguf_value *value = gguf_find(gguf, key);
    struct str text;
    bool none = value && value->type == GGUF_ARRAY && value->n == 0; /* bytes alone */
    if (!value || (!none && !gguf_str(value, 0, &text)))
        return error_set(error, OB_ERR_FORMAT, "%s is missing or no array of strings", key);
    ob_status status = tok_pairs_init(tok, value->n, error);
    struct buf scratch = BUF_INIT;
    for (uint64_t i = 0; status == OB_OK && i < value->n; i++) {
        size_t n;
        gguf_str(value, i, &text);
        if (!space_after_first(text, &n)) {
            status =
                error_set(error, OB_ERR_FORMAT, "merge %llu is not a pair", (unsigned long long)i);
            break;
        }
        status = tok_pairs_put(tok, (uint32_t)i, (struct str){text.p, n},
                               (struct str){text.p + n + 1, text.n - n - 1}, &scratch, error);
    }
    tok_pairs_end(tok);
    buf_free(&scratch);
    error_at(error, NULL, status == OB_OK ? NULL : key, OB_NO_OFFSET);
    return status;
}

/* What a GGUF leaves to the pre-tokenizer's name. */
static ob_status apply_pretok(struct tok *tok, const struct pretok *pretok, ob_error *error) {
    static const struct str space = {"\xe2\x96\x81", 3}, blank = {" ", 1};
    tok->byte_level = !(pretok->flags & PRETOK_CHARS);
    tok->whole_words = pretok->flags & PRETOK_WHOLE;
    tok->add_bos = pretok->flags & PRETOK_BOS;
    struct normal_step nfc = {.apply = normal_nfc},
                       marks = {.apply = normal_replace, .from = blank, .to = space};
    ob_status status = OB_OK;
    if (pretok->flags & PRETOK_NFC) status = tok_add_step(&tok->normal, nfc, error);
    if (status == OB_OK && pretok->flags & PRETOK_SPACES)
        status = tok_add_step(&tok->normal, marks, error);
    for (size_t i = 0; status == OB_OK && pretok->rule[i]; i++)
        status = tok_add_regex(tok, str_of(pretok->rule[i]->regex), error);
    if (status == OB_OK && pretok->flags & PRETOK_WORDS)
        status = tok_add_cut(tok, (struct cut){.apply = cut_lines, .string = space,
                                               .prefix = CUT_ALWAYS, .behavior = CUT_WITH_NEXT},
                             error);
    struct decode_step decode = {.apply = tok->byte_level ? decode_bytes : decode_replace,
                                 .from = space, .to = blank};
    return status == OB_OK ? tok_add_decoder(tok, decode, error) : status;
}

static const char pre_key[] = "tokenizer.ggml.pre";

ob_status tok_bpe_open(struct tok *tok, const struct gguf *gguf, struct str pre, ob_error *error) {
    const struct pretok *pretok = pretok_find(pre);
    if (!pretok) {
        error_set(error, OB_ERR_UNSUPPORTED, "pre-tokenizer \"%.*s\" is not supported",
                  STR_ARG(pre));
        error_at(error, NULL, pre_key, OB_NO_OFFSET);
        return OB_ERR_UNSUPPORTED;
    }
    ob_status status = apply_pretok(tok, pretok, error);
    if (status != OB_OK) return status;
    tok_find_bytes(tok);
    tok->byte_fallback = !tok->byte_level;
    status = read_merges(tok, gguf, error);
    if (status != OB_OK) return status;
    tok->describe = arena_printf(&tok->arena, "bpe (%s)", pretok->name);
    return tok->describe ? OB_OK : error_memory(error, "tokenizer", 0);
}

static ob_status open_gguf(struct tok *tok, const struct gguf *gguf, ob_error *error) {
    struct str pre = STR_LIT("default");
    const struct gguf_value *value = gguf_find(gguf, pre_key);
    if (value && !gguf_str(value, 0, &pre))
        return error_set(error, OB_ERR_FORMAT, "%s is not a string", pre_key);
    return tok_bpe_open(tok, gguf, pre, error);
}

const struct tok_model tokenizer_bpe = {
    .name = "bpe",
    .gguf = "gpt2",
    .open_gguf = open_gguf,
    .encode = tok_bpe_encode,
};

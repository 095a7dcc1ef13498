/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_write.c: see gguf_write.h. The key-value pairs and the tensor entries grow in two buffers as
 * they are put; offsets are known at once because data follows in the order of the entries. */
#include "format/gguf_write.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/os.h"
#include "format/gguf_part.h"

enum { CHUNK = 1 << 20, ALIGNMENT = 32 };

struct pending {
    struct gguf_new_tensor source;
    uint64_t bytes;
};

struct gguf_writer {
    struct buf values, entries;
    struct buf tensors; /* struct pending x count */
    uint64_t value_count, tensor_count;
    uint64_t end;       /* of the last tensor, from the start of the data */
    uint32_t alignment;
    bool oversized;     /* a tensor's bytes do not fit, or its rows are no whole blocks */
};

struct gguf_writer *gguf_writer_new(void) {
    struct gguf_writer *w = calloc(1, sizeof *w);
    if (w) w->alignment = ALIGNMENT;
    return w;
}

void gguf_writer_free(struct gguf_writer **writer) {
    if (!*writer) return;
    buf_free(&(*writer)->values);
    buf_free(&(*writer)->entries);
    buf_free(&(*writer)->tensors);
    free(*writer);
    *writer = NULL;
}

/* ---- putting --------------------------------------------------------------------------------- */

static void add_u32(struct buf *b, uint32_t v) { buf_add(b, &v, sizeof v); }
static void add_u64(struct buf *b, uint64_t v) { buf_add(b, &v, sizeof v); }
static void add_str(struct buf *b, struct str s) {
    add_u64(b, s.n);
    buf_add(b, s.p, s.n);
}

static void put_key(struct gguf_writer *w, struct str key, enum gguf_type type) {
    add_str(&w->values, key);
    add_u32(&w->values, (uint32_t)type);
    w->value_count++;
}

static void put_array_key(struct gguf_writer *w, const char *key, enum gguf_type element,
                          size_t n) {
    put_key(w, str_of(key), GGUF_ARRAY);
    add_u32(&w->values, (uint32_t)element);
    add_u64(&w->values, n);
}

void gguf_put_alignment(struct gguf_writer *w, uint32_t alignment) {
    assert(alignment && (alignment & (alignment - 1)) == 0 && w->tensor_count == 0);
    gguf_put_whole(w, "general.alignment", GGUF_U32, alignment);
    w->alignment = alignment;
}

void gguf_put_whole(struct gguf_writer *w, const char *key, enum gguf_type type, uint64_t bits) {
    assert(gguf_width(type) && type != GGUF_F32 && type != GGUF_F64);
    put_key(w, str_of(key), type);
    buf_add(&w->values, &bits, gguf_width(type));
}

void gguf_put_f32(struct gguf_writer *w, const char *key, float value) {
    put_key(w, str_of(key), GGUF_F32);
    buf_add(&w->values, &value, sizeof value);
}

void gguf_put_f64(struct gguf_writer *w, const char *key, double value) {
    put_key(w, str_of(key), GGUF_F64);
    buf_add(&w->values, &value, sizeof value);
}

void gguf_put_str(struct gguf_writer *w, const char *key, struct str value) {
    put_key(w, str_of(key), GGUF_STRING);
    add_str(&w->values, value);
}

void gguf_put_array(struct gguf_writer *w, const char *key, enum gguf_type element,
                    const void *data, size_t n) {
    assert(gguf_width(element));
    put_array_key(w, key, element, n);
    buf_add(&w->values, data, n * gguf_width(element));
}

void gguf_put_strs(struct gguf_writer *w, const char *key, const struct str *value, size_t n) {
    put_array_key(w, key, GGUF_STRING, n);
    for (size_t i = 0; i < n; i++) add_str(&w->values, value[i]);
}

void gguf_put_value(struct gguf_writer *w, const struct gguf_value *value) {
    put_key(w, value->key, value->type);
    enum gguf_type type = value->type;
    if (type == GGUF_ARRAY) {
        type = value->element;
        add_u32(&w->values, (uint32_t)type);
        add_u64(&w->values, value->n);
    }
    struct str s;
    if (type != GGUF_STRING) buf_add(&w->values, value->data, (size_t)value->n * gguf_width(type));
    else
        for (uint64_t i = 0; i < value->n; i++)
            if (gguf_str(value, i, &s)) add_str(&w->values, s);
}

static uint64_t align_up(uint64_t n, uint64_t alignment) {
    return (n + alignment - 1) & ~(alignment - 1);
}

void gguf_put_tensor(struct gguf_writer *w, const struct gguf_new_tensor *tensor) {
    assert(tensor->ndim >= 1 && tensor->ndim <= 4 && (tensor->data || tensor->read));
    enum { I32 = 26 /* ggml's number */ };
    const struct quant *quant = tensor->quant;
    struct pending p = {.source = *tensor};
    if (quant) p.bytes = quant_row_bytes(quant, tensor->dim[0]);
    else if (__builtin_mul_overflow(tensor->dim[0], sizeof(int32_t), &p.bytes)) p.bytes = 0;
    add_str(&w->entries, tensor->name);
    add_u32(&w->entries, tensor->ndim);
    for (uint32_t i = 0; i < tensor->ndim; i++) {
        add_u64(&w->entries, tensor->dim[i]);
        if (i > 0 && __builtin_mul_overflow(p.bytes, tensor->dim[i], &p.bytes)) p.bytes = 0;
    }
    uint64_t offset = align_up(w->end, w->alignment);
    add_u32(&w->entries, quant ? quant->id : I32);
    add_u64(&w->entries, offset);
    if (p.bytes == 0 || p.bytes > INT64_MAX - offset - w->alignment) w->oversized = true;
    else w->end = offset + p.bytes;
    buf_add(&w->tensors, &p, sizeof p);
    w->tensor_count++;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Where bytes go: a file or a buffer. */
struct sink {
    FILE *file;
    struct buf *buf;
    const struct gguf_progress *progress; /* NULL: nobody asks */
    uint64_t done, total;
};

static ob_status give(struct sink *sink, const void *data, size_t n, ob_error *error) {
    if (n == 0) return OB_OK;
    sink->done += n;
    if (sink->file) {
        if (fwrite(data, 1, n, sink->file) != n)
            return error_set(error, OB_ERR_IO, "cannot write: %s", strerror(errno));
        if (sink->progress && !sink->progress->fn(sink->progress->user, sink->done, sink->total))
            return error_set(error, OB_ERR_CANCELLED, "interrupted");
        return OB_OK;
    }
    buf_add(sink->buf, data, n);
    return sink->buf->failed ? error_memory(error, "a GGUF file", n) : OB_OK;
}

/* Zero bytes from `at` up to the alignment; few, as alignments are small. */
static ob_status pad(struct sink *sink, uint64_t at, uint64_t alignment, ob_error *error) {
    static const char zero[256];
    ob_status status = OB_OK;
    for (uint64_t n = align_up(at, alignment) - at; n > 0 && status == OB_OK;) {
        size_t now = n < sizeof zero ? (size_t)n : sizeof zero;
        status = give(sink, zero, now, error);
        n -= now;
    }
    return status;
}

static ob_status write_tensor(const struct pending *p, struct sink *sink, ob_error *error) {
    if (p->source.data) return give(sink, p->source.data, (size_t)p->bytes, error);
    void *chunk = malloc(CHUNK);
    if (!chunk) return error_memory(error, "tensor data", CHUNK);
    ob_status status = OB_OK;
    for (uint64_t at = 0; at < p->bytes && status == OB_OK;) {
        size_t n = p->bytes - at < CHUNK ? (size_t)(p->bytes - at) : CHUNK;
        status = p->source.read(p->source.user, at, chunk, n, error);
        if (status == OB_OK) status = give(sink, chunk, n, error);
        at += n;
    }
    free(chunk);
    return status;
}

static ob_status make_header(const struct gguf_writer *w, struct buf *out, ob_error *error) {
    if (w->values.failed || w->entries.failed || w->tensors.failed)
        return error_memory(error, "a GGUF header", w->values.n + w->entries.n + w->tensors.n);
    if (w->oversized)
        return error_set(error, OB_ERR_ARGUMENT, "a tensor is too large or has broken rows");
    buf_puts(out, "GGUF");
    add_u32(out, 3);
    add_u64(out, w->tensor_count);
    add_u64(out, w->value_count);
    buf_add(out, w->values.p, w->values.n);
    buf_add(out, w->entries.p, w->entries.n);
    return out->failed ? error_memory(error, "a GGUF header", w->values.n + w->entries.n) : OB_OK;
}

static struct pending tensor_at(const struct gguf_writer *w, uint64_t i) {
    struct pending p;
    memcpy(&p, w->tensors.p + i * sizeof p, sizeof p);
    return p;
}

/* Tensors from `first` on, behind `at` bytes that are there. */
static ob_status write_tensors(const struct gguf_writer *w, struct sink *sink, uint64_t first,
                               uint64_t at, ob_error *error) {
    ob_status status = OB_OK;
    for (uint64_t i = first; i < w->tensor_count && status == OB_OK; i++) {
        struct pending p = tensor_at(w, i);
        status = pad(sink, at, w->alignment, error);
        if (status == OB_OK) status = write_tensor(&p, sink, error);
        at = align_up(at, w->alignment) + p.bytes;
    }
    /* The reference pads the last tensor too. */
    return status == OB_OK ? pad(sink, at, w->alignment, error) : status;
}

static ob_status write_all(const struct gguf_writer *w, struct sink *sink, ob_error *error) {
    struct buf header = BUF_INIT;
    ob_status status = make_header(w, &header, error);
    if (status == OB_OK) status = give(sink, header.p, header.n, error);
    if (status == OB_OK) status = write_tensors(w, sink, 0, header.n, error);
    buf_free(&header);
    return status;
}

ob_status gguf_write_buf(const struct gguf_writer *w, struct buf *out, ob_error *error) {
    struct sink sink = {.buf = out};
    return write_all(w, &sink, error);
}

ob_status gguf_write_file(const struct gguf_writer *w, const char *path, ob_error *error) {
    struct buf part = BUF_INIT;
    buf_printf(&part, "%s.part", path);
    if (part.failed) return buf_free(&part), error_memory(error, "a path", strlen(path));
    struct sink sink = {.file = fopen(part.p, "wbx")};
    ob_status status;
    if (!sink.file) {
        status = error_set(error, OB_ERR_IO, "cannot create: %s", strerror(errno));
        error_at(error, part.p, NULL, OB_NO_OFFSET);
        buf_free(&part);
        return status;
    }
    status = write_all(w, &sink, error);
    /* A full disk may show only when the last bytes leave stdio's buffer. */
    if (fclose(sink.file) != 0 && status == OB_OK)
        status = error_set(error, OB_ERR_IO, "cannot write: %s", strerror(errno));
    if (status == OB_OK && rename(part.p, path) != 0)
        status = error_set(error, OB_ERR_IO, "cannot rename: %s", strerror(errno));
    if (status != OB_OK) {
        error_at(error, path, NULL, OB_NO_OFFSET);
        remove(part.p);
    }
    buf_free(&part);
    return status;
}

/* ---- going on -------------------------------------------------------------------------------- */

/* What a part begins with in place of the start of its header: as long as that, so that it is put
 * right at the end. No file of anybody else's begins so, and a part is never taken for a model. */
#define MARK "1bitpart"
enum { START = 24, MARK_N = sizeof MARK - 1 };

/* One file in the making. */
struct making {
    const struct gguf_writer *w;
    const char *path, *part;
    struct buf header;
    char mark[START + 1]; /* MARK and 16 digits, which tell other files of ours from this one */
    uint64_t first, at;   /* the tensor that comes next, and the bytes that are there before it */
};

static void make_mark(struct making *m, uint64_t source) {
    uint64_t hash = str_hash((struct str){m->header.p, START}) ^ str_hash(STR_LIT(OB_VERSION));
    hash = (hash ^ source) * 1099511628211u;
    snprintf(m->mark, sizeof m->mark, MARK "%016llx", (unsigned long long)hash);
}

static ob_status fails(const char *path, const char *what, ob_error *error) {
    error_set(error, OB_ERR_IO, "%s: %s", what, strerror(errno));
    error_at(error, path, NULL, OB_NO_OFFSET);
    return OB_ERR_IO;
}

static ob_status refuse(const char *path, const char *why, ob_error *error) {
    error_set(error, OB_ERR_IO, "%s", why);
    error_at(error, path, NULL, OB_NO_OFFSET);
    return OB_ERR_IO;
}

/* How many of the file's next bytes are these, before others or its end? */
static size_t same_bytes(FILE *file, const void *want, size_t n) {
    size_t at = 0;
    while (at < n && getc(file) == ((const unsigned char *)want)[at]) at++;
    return at;
}

#define STRANGE "is there and is not of this conversion: move it away"
#define OTHERS "is there and is of another conversion (other files, or another type): move it away"

/* Is the part of this file? Its size if so; one killed early may end within the header. */
static ob_status check_part(const struct making *m, FILE *file, uint64_t *size, ob_error *error) {
    off_t end = fseeko(file, 0, SEEK_END) == 0 ? ftello(file) : -1;
    if (end < 0 || fseeko(file, 0, SEEK_SET) != 0) return fails(m->part, "cannot read", error);
    *size = (uint64_t)end;
    size_t same = same_bytes(file, m->mark, START);
    bool ours = same >= MARK_N;
    if (same == START) same += same_bytes(file, m->header.p + START, m->header.n - START);
    if (same == *size || same == m->header.n) return OB_OK;
    return refuse(m->part, ours ? OTHERS : STRANGE, error);
}

/* Behind the last whole tensor of `size` bytes. */
static void find_rest(struct making *m, uint64_t size) {
    if (size < m->header.n) return;
    m->at = m->header.n;
    for (; m->first < m->w->tensor_count; m->first++) {
        uint64_t end = align_up(m->at, m->w->alignment) + tensor_at(m->w, m->first).bytes;
        if (end > size) break;
        m->at = end;
    }
}

static ob_status open_part(struct making *m, FILE **file, ob_error *error) {
    *file = os_open_alone(m->part);
    if (!*file && errno == EEXIST) return refuse(m->part, STRANGE, error);
    if (!*file && errno == EWOULDBLOCK)
        return refuse(m->part, "another conversion is writing it", error);
    if (!*file) return fails(m->part, "cannot open", error);
    uint64_t size;
    ob_status s = check_part(m, *file, &size, error);
    if (s != OB_OK) return s;
    /* Who had it until now may have finished. */
    if (os_name_taken(m->path)) {
        if (size == 0) remove(m->part);
        return refuse(m->path, "exists already", error);
    }
    find_rest(m, size);
    if (!os_truncate_open(*file, m->at) || fseeko(*file, (off_t)m->at, SEEK_SET) != 0)
        return fails(m->part, "cannot write", error);
    return OB_OK;
}

static uint64_t total_bytes(const struct gguf_writer *w, uint64_t header) {
    for (uint64_t i = 0; i < w->tensor_count; i++)
        header = align_up(header, w->alignment) + tensor_at(w, i).bytes;
    return align_up(header, w->alignment);
}

/* The header's start in place of the mark: now it is a GGUF file, and nobody's part. What takes
 * long is done before, for a part that is killed between that and its new name stays nobody's. */
static ob_status finish(const struct making *m, FILE *file, ob_error *error) {
    if (os_name_taken(m->path))
        return refuse(m->path, "is there now: move it away, and the same again finishes", error);
    if (!os_sync(file) || fseeko(file, 0, SEEK_SET) != 0 ||
        fwrite(m->header.p, 1, START, file) != START || fflush(file) != 0)
        return fails(m->part, "cannot write", error);
    if (os_rename_new(m->part, m->path)) return OB_OK;
    return errno == EEXIST ? refuse(m->path, "is there now: the new one stays .part", error)
                           : fails(m->part, "cannot rename", error);
}

static ob_status write_part(struct making *m, const struct gguf_progress *progress,
                            ob_error *error) {
    struct sink sink = {.progress = progress, .total = total_bytes(m->w, m->header.n)};
    ob_status status = open_part(m, &sink.file, error);
    sink.done = m->at;
    if (status == OB_OK && progress && !progress->fn(progress->user, sink.done, sink.total))
        status = error_set(error, OB_ERR_CANCELLED, "interrupted");
    if (status == OB_OK && m->at == 0) {
        status = give(&sink, m->mark, START, error);
        if (status == OB_OK)
            status = give(&sink, m->header.p + START, m->header.n - START, error);
    }
    if (status == OB_OK) status = write_tensors(m->w, &sink, m->first, sink.done, error);
    if (status == OB_OK) status = finish(m, sink.file, error);
    if (sink.file && fclose(sink.file) != 0 && status == OB_OK)
        status = fails(m->part, "cannot write", error);
    return status;
}

ob_status gguf_write_resumed(const struct gguf_writer *w, const char *path, uint64_t source,
                             const struct gguf_progress *progress, ob_error *error) {
    struct buf part = BUF_INIT;
    struct making m = {.w = w, .path = path};
    buf_printf(&part, "%s.part", path);
    m.part = part.p;
    ob_status status = part.failed           ? error_memory(error, "a path", strlen(path))
                       : os_name_taken(path) ? refuse(path, "exists already", error)
                                             : make_header(w, &m.header, error);
    if (status == OB_OK) {
        make_mark(&m, source);
        status = write_part(&m, progress, error);
    }
    if (status != OB_OK) error_at(error, part.failed ? path : part.p, NULL, OB_NO_OFFSET);
    buf_free(&m.header);
    buf_free(&part);
    return status;
}

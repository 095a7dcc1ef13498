/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_write.h: writes GGUF v3 files. Keys and tensors are put one by one, then the whole is
 * written: to a buffer, or to a file that appears under its name only when complete. Tensor data is
 * asked for while writing and never held. Lack of memory while putting is reported by the write.
 * Keys and names must be unique, as the reader demands. Not thread safe. */
#ifndef FORMAT_GGUF_WRITE_H
#define FORMAT_GGUF_WRITE_H

#include "base/buf.h"
#include "format/gguf.h"

struct gguf_writer;

/* Fills out with n bytes of the tensor's data from `offset` on; called in file order. */
typedef ob_status gguf_read_fn(void *user, uint64_t offset, void *out, size_t n, ob_error *error);

struct gguf_new_tensor {
    struct str name;
    const struct quant *quant; /* NULL: I32 */
    uint32_t ndim;
    uint64_t dim[4];    /* dim[0] is the row length, whole blocks; [ndim..3] are ignored */
    const void *data;   /* lives until the write, or NULL: `read` is asked */
    gguf_read_fn *read;
    void *user;
};

struct gguf_writer *gguf_writer_new(void); /* NULL: out of memory */
void gguf_writer_free(struct gguf_writer **writer);

/* A power of two; also puts general.alignment. Before the first tensor; 32 if not called. */
void gguf_put_alignment(struct gguf_writer *w, uint32_t alignment);
/* Whole types and GGUF_BOOL: the low bytes of `bits`. */
void gguf_put_whole(struct gguf_writer *w, const char *key, enum gguf_type type, uint64_t bits);
void gguf_put_f32(struct gguf_writer *w, const char *key, float value);
void gguf_put_f64(struct gguf_writer *w, const char *key, double value);
void gguf_put_str(struct gguf_writer *w, const char *key, struct str value);
/* n elements of a fixed-size type, copied. */
void gguf_put_array(struct gguf_writer *w, const char *key, enum gguf_type element,
                    const void *data, size_t n);
void gguf_put_strs(struct gguf_writer *w, const char *key, const struct str *value, size_t n);
/* A value as read, with its key. */
void gguf_put_value(struct gguf_writer *w, const struct gguf_value *value);
void gguf_put_tensor(struct gguf_writer *w, const struct gguf_new_tensor *tensor);

/* Appends the whole file. */
ob_status gguf_write_buf(const struct gguf_writer *w, struct buf *out, ob_error *error);
/* Writes path + ".part", which must not be there, and renames it; removes it when something fails.
 * What path names is replaced. */
ob_status gguf_write_file(const struct gguf_writer *w, const char *path, ob_error *error);

/* The same for files that take long: what was written stays when it fails, or is killed, and a
 * later call with the same keys, tensors and `source` goes on behind the last whole tensor there.
 * `source` tells apart what the data comes from (source_identity); the file does not hold it. The
 * part begins with a mark of ours until it is complete. One that is of no such call, or that
 * another process writes, is left alone with OB_ERR_IO, and so is what has path's name at the
 * start or at the end. `progress` hears of bytes, first of those that were there; false ends the
 * writing with OB_ERR_CANCELLED. */
struct gguf_progress {
    bool (*fn)(void *user, uint64_t done, uint64_t total);
    void *user;
};
ob_status gguf_write_resumed(const struct gguf_writer *w, const char *path, uint64_t source,
                             const struct gguf_progress *progress, ob_error *error);

#endif

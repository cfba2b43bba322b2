// Raw values become codes: 0 for missing, else 1 + the number of the column's keys below the value.
//
// Keys are the distinct values of an exact column, the edges of a column in quantiles, 0 .. K - 1 of a column of
// categories. NumPy: where(isnan(x), 0, 1 + searchsorted(keys, x, side="left")).
// X lies row by row or column by column: cell (row, f) at row * row_step + f * column_step.

#include "device.cuh"

enum { GT_TILE = 1024, GT_BYTE_KEYS = 255 };

// Codes of the features of one byte, a word of four a thread.
// Grid: any number of blocks; each takes (word, tile of rows) pairs.
extern "C" __global__ void __launch_bounds__(256)
    encode_bytes(const void* X,           // IN (n_block, columns) float32 or float64
                 int itemsize, gt_i64 n_block, gt_i64 row_step, gt_i64 column_step,
                 const int* feature,      // IN (n_bytes,) column of each place
                 int n_bytes,
                 const double* keys,      // IN flat
                 const gt_i64* key_ptr,   // IN (columns + 1,)
                 unsigned* records,       // OUT (groups, n, words)
                 int words, gt_i64 n, gt_i64 first_row) {
    __shared__ double mine[GT_PER_WORD * GT_BYTE_KEYS];
    const int n_words = (n_bytes + GT_PER_WORD - 1) / GT_PER_WORD;
    const gt_i64 tiles = (n_block + GT_TILE - 1) / GT_TILE;
    for (gt_i64 item = blockIdx.x; item < tiles * n_words; item += gridDim.x) {
        const int word = (int)(item % n_words), group = word / (words - 1);
        const int here = min(GT_PER_WORD, n_bytes - GT_PER_WORD * word);
        __syncthreads();  // the keys of the last item are no longer read
        for (int q = 0; q < here; ++q) {
            const gt_i64 first = key_ptr[feature[GT_PER_WORD * word + q]];
            const int m = (int)(key_ptr[feature[GT_PER_WORD * word + q] + 1] - first);
            for (int i = threadIdx.x; i < m; i += blockDim.x) mine[q * GT_BYTE_KEYS + i] = keys[first + i];
        }
        __syncthreads();  // keys are there
        const gt_i64 begin = item / n_words * GT_TILE, end = min(begin + GT_TILE, n_block);
        for (gt_i64 row = begin + threadIdx.x; row < end; row += blockDim.x) {
            unsigned codes = 0;
            for (int q = 0; q < here; ++q) {
                const int f = feature[GT_PER_WORD * word + q];
                const int m = (int)(key_ptr[f + 1] - key_ptr[f]);
                const double x = gt_value(X, itemsize, row * row_step + f * column_step);
                const unsigned code = x != x ? 0 : 1 + gt_below_keys(mine + q * GT_BYTE_KEYS, m, x);
                codes |= code << 8 * q;
            }
            records[((gt_i64)group * n + first_row + row) * words + word % (words - 1)] = codes;
        }
    }
}

// Codes of the features of two bytes. Grid: any; a thread takes (feature, row) pairs.
extern "C" __global__ void __launch_bounds__(256)
    encode_wide(const void* X,           // IN (n_block, columns) float32 or float64
                int itemsize, gt_i64 n_block, gt_i64 row_step, gt_i64 column_step,
                const int* feature,      // IN (n_wide,) column of each place
                int n_wide,
                const double* keys,      // IN flat
                const gt_i64* key_ptr,   // IN (columns + 1,)
                unsigned short* wide,    // OUT (n_wide, n)
                gt_i64 n, gt_i64 first_row) {
    for (gt_i64 i = GT_THREAD; i < n_block * n_wide; i += GT_THREADS) {
        const gt_i64 place = i / n_block, row = i % n_block;
        const int f = feature[place];
        const double x = gt_value(X, itemsize, row * row_step + f * column_step);
        const int m = (int)(key_ptr[f + 1] - key_ptr[f]);
        wide[place * n + first_row + row] = x != x ? 0 : 1 + gt_below_keys(keys + key_ptr[f], m, x);
    }
}

// The label of every row goes into the last word of its records. NumPy: records[:, :, -1] = labels.
// Grid: any; a thread takes (group, row) pairs.
extern "C" __global__ void __launch_bounds__(256)
    put_labels(const int* labels,   // IN (n,)
               unsigned* records,   // OUT (groups, n, words)
               int words, gt_i64 n, int groups) {
    for (gt_i64 i = GT_THREAD; i < n * groups; i += GT_THREADS) {
        records[i * words + words - 1] = (unsigned)labels[i % n];
    }
}

// A few columns of X, -0.0 as 0.0. NumPy: X[:, f : f + count].T + 0. Grid: any; a thread takes (column, row) pairs.
extern "C" __global__ void __launch_bounds__(256)
    take_columns(const void* X,      // IN (n_block, columns) float32 or float64
                 int itemsize, gt_i64 n_block, gt_i64 row_step, gt_i64 column_step, int f, int count,
                 double* columns,    // OUT (count, n)
                 gt_i64 n, gt_i64 first_row) {
    for (gt_i64 i = GT_THREAD; i < n_block * count; i += GT_THREADS) {
        const gt_i64 c = i / n_block, row = i % n_block;
        columns[c * n + first_row + row] = gt_value(X, itemsize, row * row_step + (f + c) * column_step) + 0.0;
    }
}

// Rows of all trees in order. NumPy: tile(arange(n), trees). Grid: any; a thread takes positions.
extern "C" __global__ void __launch_bounds__(256)
    all_rows(unsigned* rows,  // OUT (positions,)
             gt_i64 n, gt_i64 positions) {
    for (gt_i64 i = GT_THREAD; i < positions; i += GT_THREADS) rows[i] = (unsigned)(i % n);
}

// How many values are missing. NumPy: isnan(X).sum(). Grid: any; a thread takes cells.
extern "C" __global__ void __launch_bounds__(256)
    count_missing(const void* X,     // IN (n_block, columns) float32 or float64
                  int itemsize, gt_i64 n_block, gt_i64 row_step, gt_i64 column_step, int columns,
                  gt_i64* count) {   // OUT (1,) added to
    gt_i64 mine = 0;
    for (gt_i64 i = GT_THREAD; i < n_block * columns; i += GT_THREADS) {
        const double x = gt_value(X, itemsize, i / columns * row_step + i % columns * column_step);
        mine += x != x;
    }
    if (mine > 0) gt_add(count, mine);
}

// Tables: channels by (slot, feature, code), counted from the rows of each slot.
//
// Dense tables have a cell for every code of a feature: table[base + channel * width + code] with
//   base = (slot * slot_cells + cell_of[place]) * n_channels   and   width = cell_of[place + 1] - cell_of[place]
// Features of few codes are added up in shared memory first. There a lane owns a column of cells, so 32 lanes meet 32
// banks whatever the codes are (where `columns` is 32):
//   lane  = (row of the step) * features + feature
//   cells[(code * channels + channel) * columns + lane % columns]
// Sparse tables hold only codes that occur: entries sorted by (slot, feature, code), then run lengths.

#include "device.cuh"

#define GT_BIG_CELL (sizeof(gt_cell) == 8)

// Add to a shared cell; eight bytes as two adds of four with a carry, the high halves behind all the low ones.
static __device__ __forceinline__ void gt_add_shared(unsigned* cells, int i, int n_cells, gt_i64 value) {
    const unsigned low = (unsigned)(gt_u64)value;
    const unsigned before = atomicAdd(&cells[i], low);
    if (GT_BIG_CELL) {
        const unsigned high = (unsigned)((gt_u64)value >> 32) + (before + low < low);
        if (high) atomicAdd(&cells[n_cells + i], high);
    }
}

// Add the block's cells, over their private copies, to the table, and leave them 0. What lies beyond the slot's own
// features, codes and channels was never added to.
static __device__ void gt_flush(unsigned* cells, int n_cells, int channels, int columns, int features, gt_cell* table,
                                const int* cell_of, int n_channels, int first_channel) {
    for (int i = threadIdx.x; i < n_cells / columns * features; i += blockDim.x) {
        const int place = i % features, channel = i / features % channels, code = i / features / channels;
        gt_u64 sum = 0;
        for (int column = place; column < columns; column += features) {
            const int at = (code * channels + channel) * columns + column;
            sum += cells[at] + (GT_BIG_CELL ? (gt_u64)cells[n_cells + at] << 32 : 0);
            cells[at] = 0;
            if (GT_BIG_CELL) cells[n_cells + at] = 0;
        }
        if (sum == 0) continue;
        const int width = cell_of[place + 1] - cell_of[place];
        const gt_i64 at = (gt_i64)cell_of[place] * n_channels + (gt_i64)(first_channel + channel) * width + code;
        gt_add(&table[at], (gt_cell)sum);
    }
}

// Add rows to dense tables through shared memory.
// Grid: `shares` blocks for each part; a part is `own` features and `channels` channels of all slots, and each block of
// it takes an equal run of tiles, so it adds to few slots. `features` is the power of two from `own` on.
extern "C" __global__ void __launch_bounds__(512, 2)
    count_shared(const unsigned* records,  // IN (groups, n, words)
                 int words, gt_i64 n,
                 const unsigned* rows,     // IN row numbers, node by node
                 const gt_i64* start,      // IN (k,) first position of each slot in `rows`
                 const gt_i64* stop,       // IN (k,)
                 const gt_i64* tile_ptr,   // IN (k + 1,) tiles before each slot
                 const int* slot_of,       // IN (k,) its number in the table
                 int k, int tile,
                 const int* place_of,      // IN (lists, m) place of a feature of one byte, others < 0; lists: 1, or one a slot
                 int lists, int m,
                 const int* cell_of,       // IN (m + 1,)
                 int codes, int features, int own, int channels, int columns, int shares,
                 int outputs, const int* sizes, const int* labels, const gt_i64* units, const gt_i64* values,
                 const unsigned* times, int how,
                 int n_channels,
                 gt_cell* table) {         // OUT
    extern __shared__ unsigned cells[];
    const int n_cells = codes * channels * columns, part = blockIdx.x / shares, share = blockIdx.x % shares;
    const int parts = (m + own - 1) / own, first = part % parts * own;
    const int first_channel = part / parts * channels, end_channel = first_channel + channels;
    const int j = GT_LANE % features, per_step = 32 / features, warps = blockDim.x >> 5;
    for (int i = threadIdx.x; i < n_cells * (GT_BIG_CELL ? 2 : 1); i += blockDim.x) cells[i] = 0;
    __syncthreads();  // cells are zero
    const gt_i64 begin_tile = tile_ptr[k] * share / shares, end_tile = tile_ptr[k] * (share + 1) / shares;
    int s = begin_tile < end_tile ? gt_find(tile_ptr, k, begin_tile) : k;
    for (; s < k && tile_ptr[s] < end_tile; ++s) {
        const gt_i64 begin = start[s] + max(begin_tile - tile_ptr[s], 0LL) * tile;
        const gt_i64 end = min(start[s] + (end_tile - tile_ptr[s]) * tile, stop[s]), slot = slot_of[s];
        const int place = j < own && first + j < m ? place_of[(lists > 1 ? slot * m : 0) + first + j] : -1;
        const gt_i64 from = begin + (threadIdx.x >> 5) * per_step + GT_LANE / features;
        for (gt_i64 p = place < 0 ? end : from; p < end; p += warps * per_step) {
            const GtRow row = gt_row(rows[p], times, how);
            const int code = gt_byte_code(records, words, n, row.number, place);
            const int cell = code * channels * columns + GT_LANE % columns;
            const auto add = [&](int channel, gt_i64 value) {
                if (channel < first_channel || channel >= end_channel) return;
                gt_add_shared(cells, cell + (channel - first_channel) * columns, n_cells, value);
            };
            if (GT_WHOLE && outputs == 1)  // the label is in the record
                add(gt_byte_label(records, words, n, row.number, place), 1);
            else
                gt_channels(row, p, n, outputs, sizes, labels, units, values, how, add);
        }
        __syncthreads();  // rows are added
        gt_flush(cells, n_cells, channels, columns, features, table + slot * cell_of[m] * n_channels, cell_of + first,
                 n_channels, first_channel);
        __syncthreads();  // cells are zero again
    }
}

// Add rows to dense tables at once: where slots have few rows, or cells do not fit shared memory.
// Grid: any; a thread takes (position, place) pairs.
extern "C" __global__ void __launch_bounds__(256, 4)
    count_global(const unsigned* records,  // IN (groups, n, words)
                 int words, gt_i64 n,
                 const unsigned* rows,     // IN row numbers, node by node
                 const gt_i64* start,      // IN (k,) first position of each slot in `rows`
                 const gt_i64* row_ptr,    // IN (k + 1,) rows before each slot
                 const int* slot_of,       // IN (k,) its number in the table
                 int k,
                 const int* place_of,      // IN (lists, m) place of a feature of one byte, others < 0; lists: 1, or one a slot
                 int lists, int m,
                 const int* cell_of,       // IN (m + 1,)
                 int outputs, const int* sizes, const int* labels, const gt_i64* units, const gt_i64* values,
                 const unsigned* times, int how,
                 int n_channels,
                 gt_cell* table) {         // OUT
    for (gt_i64 i = GT_THREAD; i < row_ptr[k] * m; i += GT_THREADS) {
        const int s = gt_find(row_ptr, k, i / m), j = (int)(i % m);
        const gt_i64 slot = slot_of[s], p = start[s] + (i / m - row_ptr[s]);
        const GtRow row = gt_row(rows[p], times, how);
        const int place = place_of[(lists > 1 ? slot * m : 0) + j];
        if (place < 0) continue;
        const int code = gt_byte_code(records, words, n, row.number, place), width = cell_of[j + 1] - cell_of[j];
        gt_cell* mine = table + (slot * cell_of[m] + cell_of[j]) * n_channels + code;
        const auto add = [&](int channel, gt_i64 value) { gt_add(mine + (gt_i64)channel * width, (gt_cell)value); };
        if (GT_WHOLE && outputs == 1)  // the label is in the record
            add(gt_byte_label(records, words, n, row.number, place), 1);
        else
            gt_channels(row, p, n, outputs, sizes, labels, units, values, how, add);
    }
}

// ---- sparse tables ----

#define GT_NO_KEY 0xFFFFFFFFFFFFFFFFULL  // of an entry that belongs to no pair of this table: sorts last

// One entry for every row and picked feature of each slot: key = (pair, code, position), pair = slot * m + number.
// Grid: any; a thread takes entries. Sort the keys afterwards.
extern "C" __global__ void __launch_bounds__(256)
    make_keys(const unsigned short* wide,    // IN (n_wide, n)
              gt_i64 n,
              const unsigned* rows,          // IN row numbers, node by node
              const gt_i64* start,           // IN (k,) first position of each slot in `rows`
              const gt_i64* row_ptr,         // IN (k + 1,) rows before each slot
              const int* slot_of,            // IN (k,) its number in the table
              int k,
              const int* place_of,           // IN (lists, m) ~place of a feature of two bytes, others are left out
              int lists, int m,
              const int* pick,               // IN (picks,) numbers of the features to look at
              int picks, int bits, const unsigned* times, int how,
              gt_u64* keys) {                // OUT (rows * picks,)
    for (gt_i64 i = GT_THREAD; i < row_ptr[k] * picks; i += GT_THREADS) {
        const int s = gt_find(row_ptr, k, i / picks);
        const gt_i64 e = i - row_ptr[s] * picks, size = row_ptr[s + 1] - row_ptr[s], slot = slot_of[s];
        const int j = pick[e / size];  // feature by feature: neighbouring threads read neighbouring rows
        const int place = place_of[(lists > 1 ? slot * m : 0) + j];
        const gt_i64 p = start[s] + e % size;
        const bool here = place < 0 && place != GT_NOWHERE;
        const gt_u64 code = here ? wide[(gt_i64)~place * n + gt_row(rows[p], times, how).number] : 0;
        keys[i] = here ? ((gt_u64)(slot * m + j) << 16 | code) << bits | (gt_u64)p : GT_NO_KEY;
    }
}

enum { GT_SPAN = 1024 };  // entries of a block: 256 threads, four each

// Whether entry i begins a cell.
static __device__ __forceinline__ int gt_begins(const gt_u64* keys, gt_i64 i, gt_i64 n_entries, int bits) {
    if (i >= n_entries || keys[i] == GT_NO_KEY) return 0;
    return i == 0 || keys[i] >> bits != keys[i - 1] >> bits;
}

// Cells that begin in each span. NumPy: add.reduceat(begins, arange(0, n, GT_SPAN)). Grid: (spans).
extern "C" __global__ void __launch_bounds__(256)
    count_cells(const gt_u64* keys,  // IN (n_entries,) sorted
                gt_i64 n_entries, int bits,
                gt_i64* before) {    // OUT (spans + 1,): the count of a span at 1 + span
    int count = 0;
    for (int round = 0; round < 4; ++round) {
        const gt_i64 i = (gt_i64)blockIdx.x * GT_SPAN + round * 256 + threadIdx.x;
        count += __syncthreads_count(gt_begins(keys, i, n_entries, bits));
    }
    if (threadIdx.x == 0) before[1 + blockIdx.x] = count;
}

// Cells of sorted entries: code, channels, and the range of each pair. Grid: (spans).
extern "C" __global__ void __launch_bounds__(256, 4)
    make_cells(const gt_u64* keys,     // IN (n_entries,) sorted
               gt_i64 n_entries, int bits,
               const gt_i64* before,   // IN (spans + 1,) cells before each span
               const unsigned* rows,   // IN row numbers, node by node
               gt_i64 n, int outputs, const int* sizes, const int* labels, const gt_i64* units, const gt_i64* values,
               const unsigned* times, int how,
               gt_i64* first,          // OUT (pairs,) zeros before
               gt_i64* end,            // OUT (pairs,) zeros before
               unsigned short* code,   // OUT (n_entries,)
               gt_cell* stats) {       // OUT (channels, n_entries) zeros before
    __shared__ int of_warp[8];
    gt_i64 cell = before[blockIdx.x] - 1;
    for (int round = 0; round < 4; ++round) {
        const gt_i64 i = (gt_i64)blockIdx.x * GT_SPAN + round * 256 + threadIdx.x;
        const int begins = gt_begins(keys, i, n_entries, bits);
        const unsigned heads = __ballot_sync(GT_EVERYONE, begins);
        __syncthreads();  // of_warp is no longer read
        if (GT_LANE == 0) of_warp[threadIdx.x >> 5] = __popc(heads);
        __syncthreads();  // of_warp is there
        gt_i64 mine = cell + __popc(heads & (gt_lanes_before() | 1u << GT_LANE));
        for (int w = 0; w < 8; ++w) {
            if (w < threadIdx.x >> 5) mine += of_warp[w];
            cell += of_warp[w];
        }
        if (i >= n_entries || keys[i] == GT_NO_KEY) continue;
        const gt_u64 key = keys[i] >> bits, pair = key >> 16;
        if (begins) code[mine] = (unsigned short)(key & 0xFFFFu);
        if (i == 0 || keys[i - 1] >> bits >> 16 != pair) first[pair] = mine;
        if (i + 1 == n_entries || keys[i + 1] >> bits >> 16 != pair) end[pair] = mine + 1;
        const gt_i64 p = (gt_i64)(keys[i] & (((gt_u64)1 << bits) - 1));
        gt_channels(gt_row(rows[p], times, how), p, n, outputs, sizes, labels, units, values, how,
                    [&](int channel, gt_i64 value) { gt_add(&stats[channel * n_entries + mine], (gt_cell)value); });
    }
}

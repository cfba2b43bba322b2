// Rows walk down all trees, in order. See gputree/backends/walk.py.

#include "device.cuh"

// A node: x <= low goes to branch 0, else 1; a lookup lists its categories. Leaves have kind GT_LEAF.
struct GtNode {
    double low;
    int feature, first_child;
    unsigned short missing, unseen;
    int kind;
};

// Leaf of one row, which begins at `row` in X, below a root, or the node at which it stays. Values are read as float64; categories are numbers from 0,
// their codes one more.
static __device__ int gt_walk(const GtNode* nodes, const gt_i64* lookup_ptr, const unsigned short* lookup_code,
                              const unsigned short* lookup_branch, int node, const void* X, int itemsize, gt_i64 row, gt_i64 column_step) {
    while (nodes[node].kind != GT_LEAF) {
        const GtNode at = nodes[node];
        const double x = gt_value(X, itemsize, row + at.feature * column_step);
        int branch = !(x <= at.low);
        if (x != x) {
            branch = at.missing;
        } else if (at.kind == GT_LOOKUP) {
            gt_i64 low = lookup_ptr[node], end = lookup_ptr[node + 1];
            for (gt_i64 high = end; low < high;) {
                const gt_i64 middle = low + (high - low) / 2;
                if ((double)lookup_code[middle] < x + 1.0)
                    low = middle + 1;
                else
                    high = middle;
            }
            branch = low < end && (double)lookup_code[low] == x + 1.0 ? lookup_branch[low] : at.unseen;
        }
        if (branch == GT_STAY) return node;
        node = at.first_child + branch;
    }
    return node;
}

// Leaves of all rows in all trees. Grid: any; a thread takes (row, tree) pairs.
extern "C" __global__ void __launch_bounds__(256)
    apply_forest(const GtNode* nodes, const gt_i64* lookup_ptr, const unsigned short* lookup_code,
                 const unsigned short* lookup_branch,
                 const int* roots,       // IN (T,)
                 int T,
                 const void* X,          // IN (n, columns) float32 or float64
                 int itemsize, gt_i64 n, gt_i64 row_step, gt_i64 column_step,
                 int* leaves) {          // OUT (n, T)
    for (gt_i64 i = GT_THREAD; i < n * T; i += GT_THREADS) {
        const gt_i64 row = i % n, tree = i / n;
        leaves[row * T + tree] = gt_walk(nodes, lookup_ptr, lookup_code, lookup_branch, roots[tree], X, itemsize,
                                         row * row_step, column_step);
    }
}

// Sums of leaf values, tree after tree. Grid: any; a thread takes rows.
extern "C" __global__ void __launch_bounds__(256)
    predict_forest(const GtNode* nodes, const gt_i64* lookup_ptr, const unsigned short* lookup_code,
                   const unsigned short* lookup_branch,
                   const int* roots,       // IN (T,)
                   int T,
                   const void* X,          // IN (n, columns) float32 or float64
                   int itemsize, gt_i64 n, gt_i64 row_step, gt_i64 column_step,
                   const double* value,    // IN (nodes, outputs)
                   int outputs,
                   double* out) {          // OUT (n, outputs) zeros before
    for (gt_i64 row = GT_THREAD; row < n; row += GT_THREADS) {
        for (int tree = 0; tree < T; ++tree) {
            const gt_i64 leaf = gt_walk(nodes, lookup_ptr, lookup_code, lookup_branch, roots[tree], X, itemsize,
                                        row * row_step, column_step);
#pragma unroll 1  // four at a time do not fit the registers of sm_100
            for (int o = 0; o < outputs; ++o) out[row * outputs + o] += value[leaf * outputs + o];
        }
    }
}

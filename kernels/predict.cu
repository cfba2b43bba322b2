// Rows walk down all trees, in order. See gputree/backends/walk.py.

#include "device.cuh"

// A node: x <= low goes to branch 0, else 1; a lookup lists its categories. Leaves have kind GT_LEAF.
struct GtNode {
    double low;
    int feature, first_child;
    unsigned short missing, unseen;
    int kind;
};

// A forest and one row, which begins at `row` in X. Values are read as float64; categories are numbers from 0, their
// codes one more.
struct GtWalk {
    const GtNode* nodes;
    const gt_i64* lookup_ptr;
    const unsigned short *lookup_code, *lookup_branch;
    const void* X;
    int itemsize;
    gt_i64 row, column_step;
    // The branch that the row takes at a node: GT_STAY in a leaf.
    __device__ __forceinline__ int branch(int node) const {
        const GtNode at = nodes[node];
        if (at.kind == GT_LEAF) return GT_STAY;
        const double x = gt_value(X, itemsize, row + at.feature * column_step);
        if (x != x) return at.missing;
        if (at.kind != GT_LOOKUP) return !(x <= at.low);
        gt_i64 low = lookup_ptr[node], end = lookup_ptr[node + 1];
        for (gt_i64 high = end; low < high;) {
            const gt_i64 middle = low + (high - low) / 2;
            if ((double)lookup_code[middle] < x + 1.0)
                low = middle + 1;
            else
                high = middle;
        }
        return low < end && (double)lookup_code[low] == x + 1.0 ? lookup_branch[low] : at.unseen;
    }
    // Where the row ends below a node, and whether it stays there (GT_STAY) or is spread.
    __device__ __forceinline__ int down(int node, int* end) const {
        for (*end = branch(node); *end < GT_STAY; *end = branch(node)) node = nodes[node].first_child + *end;
        return node;
    }
};

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
        const GtWalk walk = {nodes, lookup_ptr, lookup_code, lookup_branch, X, itemsize, row * row_step, column_step};
        int end;
        leaves[row * T + tree] = walk.down(roots[tree], &end);
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
        const GtWalk walk = {nodes, lookup_ptr, lookup_code, lookup_branch, X, itemsize, row * row_step, column_step};
        for (int tree = 0; tree < T; ++tree) {
            int end;
            const gt_i64 leaf = walk.down(roots[tree], &end);
#pragma unroll 1  // four at a time do not fit the registers of sm_100
            for (int o = 0; o < outputs; ++o) out[row * outputs + o] += value[leaf * outputs + o];
        }
    }
}

// A test on a row's way that spreads it: what it has of the row, the next of its children and the end of them. The
// first stands above the root.
struct GtFork {
    double own;
    int next, end;
};

// The same where tests spread rows: values of the leaves from left to right, each times its share of the row.
// Grid: any; a thread takes rows.
extern "C" __global__ void __launch_bounds__(128, 8)
    predict_shares(const GtNode* nodes, const gt_i64* lookup_ptr, const unsigned short* lookup_code,
                   const unsigned short* lookup_branch,
                   const int* roots,       // IN (T,)
                   int T,
                   const void* X,          // IN (n, columns) float32 or float64
                   int itemsize, gt_i64 n, gt_i64 row_step, gt_i64 column_step,
                   const double* value,    // IN (nodes, outputs)
                   int outputs,
                   double* out,            // OUT (n, outputs) zeros before
                   const unsigned short* n_children,
                   const double* share,    // IN (nodes,) of the parent's weight
                   GtFork* forks) {        // (depth + 1, threads)
    for (gt_i64 row = GT_THREAD; row < n; row += GT_THREADS) {
        const GtWalk walk = {nodes, lookup_ptr, lookup_code, lookup_branch, X, itemsize, row * row_step, column_step};
        for (int tree = 0; tree < T; ++tree) {
            forks[GT_THREAD] = {1.0, roots[tree], roots[tree] + 1};
            for (int levels = 1; levels > 0;) {
                GtFork& top = forks[(levels - 1) * GT_THREADS + GT_THREAD];
                if (top.next == top.end) {
                    --levels;
                    continue;
                }
                const double own = levels > 1 ? top.own * share[top.next] : top.own;
                int branch = GT_STAY, node = top.next++;
                if (!(own > 0.0)) continue;
                node = walk.down(node, &branch);
                if (branch == GT_SPREAD) {
                    const int first = nodes[node].first_child;
                    forks[levels++ * GT_THREADS + GT_THREAD] = {own, first, first + n_children[node]};
                    continue;
                }
#pragma unroll 1  // as above
                for (int o = 0; o < outputs; ++o) out[row * outputs + o] += own * value[(gt_i64)node * outputs + o];
            }
        }
    }
}

// The test of a split, as rows are sent to its branches.

#pragma once

#include "device.cuh"

// The test of a split, see splits.Splits; feature -1: every row takes branch 0.
struct GtTest {
    int kind, cut, missing;
    const unsigned short* code;  // of its lookup, ascending
    const unsigned short* branch;
    int n_lookup;
    __device__ __forceinline__ int take(int c) const {
        if (c == GT_MISSING) return missing;
        if (kind != GT_LOOKUP) return c > cut;
        int low = 0;
        for (int high = n_lookup; low < high;) {
            const int middle = (low + high) / 2;
            if (code[middle] < c)
                low = middle + 1;
            else
                high = middle;
        }
        return branch[low];
    }
};

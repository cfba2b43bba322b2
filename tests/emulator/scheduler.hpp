// The threads of a block take turns: who runs next, who waits at what, and what CUDA forbids them there.

#pragma once

#include "runtime.hpp"

namespace emu {

static void make_ready(Thread* t) {
    t->state = READY;
    rt.ready[rt.n_ready++] = t;
}

static Thread* pick() {
    const unsigned i = random_below(rt.n_ready);
    Thread* t = rt.ready[i];
    rt.ready[i] = rt.ready[--rt.n_ready];
    return t;
}

static void leave() {
    Thread* me = rt.current;
    Warp* warp = warp_of(me);
    if (rt.n_at_barrier)
        fail_at(rt.barrier_site, "%s: %u threads wait here, but this thread has ended", rt.barrier_site->name,
                rt.n_at_barrier);
    for (unsigned lanes = warp->waiting; lanes; lanes &= lanes - 1) {
        const Thread* other = me - lane_of(me) + __builtin_ctz(lanes);
        if (other->mask >> lane_of(me) & 1)
            fail_at(other->site,
                    "%s: lane %u waits here with mask 0x%08x, which names lane %u, but that lane has ended",
                    other->site->name, lane_of(other), other->mask, lane_of(me));
    }
    me->state = EXITED;
    warp->exited |= 1u << lane_of(me);
    rt.n_exited++;
    rt.stacks[rt.n_stacks++] = me->stack;
    emu_switch(&me->context, &rt.main);
}

static void entry() {
    rt.kernel->call(rt.launch->args);
    leave();
}

static void resume(Thread* t, Context* from) {
    if (t->state == NEW) {
        t->stack = rt.stacks[--rt.n_stacks];
        prepare(&t->context, t->stack, entry);
        t->state = READY;
    }
    rt.current = t;
    emu_counters.switches++;
    emu_switch(from, &t->context);
}

// The running thread stops here until it is made ready and picked again.
static void stop(Thread* me) {
    if (rt.n_ready) {
        Thread* next = pick();
        if (next != me) resume(next, &me->context);
    } else {
        emu_switch(&me->context, &rt.main);  // which finds that nobody can run
    }
}

static void wait_as(Thread* me, State state) {
    me->state = state;
    stop(me);
}

static void take_turns() {
    rt.patience = 1 + random_below(rt.restless);
    make_ready(rt.current);
    stop(rt.current);
}

static int vote_of(int vote, unsigned yes) { return vote == 2 ? yes == rt.n_threads : vote == 3 ? yes > 0 : (int)yes; }

// No lane may wait for one that went elsewhere.
static void check_not_awaited(const Thread* me, const EmuSite* site) {
    for (unsigned lanes = warp_of(me)->waiting; lanes; lanes &= lanes - 1) {
        const Thread* other = me - lane_of(me) + __builtin_ctz(lanes);
        if (other->mask >> lane_of(me) & 1)
            fail_at(site, "%s: lane %u waits for this lane with mask 0x%08x at %s:%d (%s)", site->name, lane_of(other),
                    other->mask, other->site->file, other->site->line, other->site->name);
    }
}

static void open_barrier(int vote) {
    emu_counters.barriers++;
    rt.epoch++;
    const int result = vote_of(vote, rt.votes);
    rt.n_at_barrier = rt.votes = 0;
    for (unsigned i = 0; i < rt.n_threads; ++i) {
        rt.threads[i].vote = result;
        make_ready(&rt.threads[i]);
    }
    for (unsigned i = 0; i * WARP < rt.n_threads; ++i) rt.warps[i].at_barrier = 0;
}

// ---- warps ----

static void check_mask(const Thread* me, const Warp* warp, const EmuSite* site, unsigned mask) {
    const unsigned bit = 1u << lane_of(me);
    const char* name = site->name;
    if (!(mask & bit)) fail_at(site, "%s: mask 0x%08x does not name lane %u, which calls it", name, mask, lane_of(me));
    if (mask & ~warp->lanes)
        fail_at(site, "%s: mask 0x%08x names lanes 0x%08x, which this block does not have", name, mask,
                mask & ~warp->lanes);
    if (mask & warp->exited)
        fail_at(site, "%s: mask 0x%08x names lanes 0x%08x, which have ended", name, mask, mask & warp->exited);
    if (mask & warp->at_barrier)
        fail_at(site, "%s: mask 0x%08x names lanes 0x%08x, which wait at the barrier of line %d", name, mask,
                mask & warp->at_barrier, rt.barrier_site->line);
    for (unsigned lanes = warp->waiting & mask; lanes; lanes &= lanes - 1) {
        const Thread* other = me - lane_of(me) + __builtin_ctz(lanes);
        if (other->site != site)
            fail_at(site, "%s: mask 0x%08x names lane %u, which waits at another call, %s:%d (%s)", name, mask,
                    lane_of(other), other->site->file, other->site->line, other->site->name);
        if (other->mask != mask)
            fail_at(site, "%s: mask 0x%08x, but lane %u gives mask 0x%08x", name, mask, lane_of(other), other->mask);
    }
    check_not_awaited(me, site);
}

static unsigned source_lane(const Thread* t) {
    const unsigned lane = lane_of(t), width = (unsigned)t->width, first = lane & ~(width - 1), by = (unsigned)t->lane;
    if (width == 0 || width > WARP || (width & (width - 1)))
        fail_at(t->site, "%s: width %d; it must be a power of two up to 32", t->site->name, t->width);
    if (t->operation == 1) return first | (by & (width - 1));
    if (t->operation == 2) return lane - first < by ? lane : lane - by;
    if (t->operation == 3) return by >= width || lane - first + by >= width ? lane : lane + by;
    return (lane ^ by) >= first + width ? lane : lane ^ by;
}

static void shuffle(Thread* lanes, unsigned mask) {
    for (unsigned left = mask; left; left &= left - 1) {
        Thread* t = lanes + __builtin_ctz(left);
        const unsigned source = source_lane(t);
        if (!(mask >> source & 1)) {
            rt.current = t;
            fail_at(t->site, "%s: lane %u reads lane %u, which mask 0x%08x does not name", t->site->name, lane_of(t),
                    source, mask);
        }
        t->result = lanes[source].value;
    }
}

static void vote(Thread* lanes, unsigned mask, int operation) {
    unsigned yes = 0;
    for (unsigned left = mask; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        yes |= (unsigned)lanes[lane].value << lane;
    }
    const emu_u64 result = operation == 5 ? yes : operation == 6 ? yes != 0 : yes == mask;
    for (unsigned left = mask; left; left &= left - 1) lanes[__builtin_ctz(left)].result = result;
}

#ifdef EMU_CHECKED
// What each lane did so far lies before what any of them does next.
static void order_lanes(Thread* lanes, unsigned mask) {
    unsigned joined[WARP] = {};
    for (unsigned left = mask; left; left &= left - 1) {
        const unsigned* seen = lanes[__builtin_ctz(left)].seen;
        for (int j = 0; j < WARP; ++j) joined[j] = seen[j] > joined[j] ? seen[j] : joined[j];
    }
    for (unsigned left = mask; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        memcpy(lanes[lane].seen, joined, sizeof joined);
        lanes[lane].seen[lane]++;
    }
}
#endif

static void finish_warp(Thread* me, Warp* warp) {
    Thread* lanes = me - lane_of(me);
    emu_counters.warp_operations++;
    if (me->operation >= 5)
        vote(lanes, me->mask, me->operation);
    else if (me->operation >= 1)
        shuffle(lanes, me->mask);
#ifdef EMU_CHECKED
    if (me->operation == 0 || rt.launch->votes_order_memory) order_lanes(lanes, me->mask);
#endif
    warp->waiting &= ~me->mask;
    for (unsigned left = me->mask & ~(1u << lane_of(me)); left; left &= left - 1)
        make_ready(lanes + __builtin_ctz(left));
    if (!(next_random() & 3)) take_turns();  // else the last lane to come goes on
}

// ---- blocks ----

static void begin_block(unsigned n_threads) {
    rt.n_threads = n_threads;
    rt.n_ready = rt.n_exited = rt.n_at_barrier = rt.votes = 0;
    for (unsigned i = 0; i < n_threads; ++i) {
        Thread* t = &rt.threads[i];
        t->number = i;
        t->index = index_of(i, rt.block_size);
        t->state = NEW;
        rt.ready[rt.n_ready++] = t;
#ifdef EMU_CHECKED
        memset(t->seen, 0, sizeof t->seen);
        t->seen[i % WARP] = 1;
#endif
    }
    for (unsigned i = 0; i * WARP < n_threads; ++i) {
        const unsigned left = n_threads - i * WARP;
        rt.warps[i] = {left >= WARP ? ~0u : (1u << left) - 1, 0, 0, 0, 0, nullptr};
    }
    // Some blocks rush, in others threads change at almost every access: different faults show.
    static const unsigned moods[] = {2, 8, 64, 1024, 1u << 30};
    rt.restless = moods[random_below(5)];
    rt.patience = 1 + random_below(rt.restless);
    rt.block_epoch = ++rt.epoch;
}

static void run_block() {
    while (rt.n_ready) resume(pick(), &rt.main);
    rt.current = nullptr;
    if (rt.n_exited < rt.n_threads)
        fail_at(rt.barrier_site, "no thread can go on: %u of %u wait", rt.n_threads - rt.n_exited, rt.n_threads);
}

}  // namespace emu

// ---- called by kernels ----

extern "C" {
EmuDim emu_thread_idx() { return emu::rt.current->index; }
EmuDim emu_block_idx() { return emu::rt.block_index; }
EmuDim emu_block_dim() { return emu::rt.block_size; }
EmuDim emu_grid_dim() { return emu::rt.grid_size; }

int emu_barrier(const EmuSite* site, int vote, int predicate) {
    using namespace emu;
    Thread* me = rt.current;
    if (rt.n_exited)
        fail_at(site, "%s: %u of %u threads of the block have ended before it", site->name, rt.n_exited, rt.n_threads);
    if (rt.n_at_barrier && rt.barrier_site != site)
        fail_at(site, "%s: %u threads wait at another barrier, %s:%d", site->name, rt.n_at_barrier,
                rt.barrier_site->file, rt.barrier_site->line);
    check_not_awaited(me, site);
    rt.barrier_site = site;
    rt.votes += predicate != 0;
    warp_of(me)->at_barrier |= 1u << lane_of(me);
    if (++rt.n_at_barrier < rt.n_threads) {
        wait_as(me, AT_BARRIER);
    } else {
        open_barrier(vote);
        stop(me);
    }
    return me->vote;
}

emu_u64 emu_warp(const EmuSite* site, int operation, unsigned mask, emu_u64 value, int lane, int width) {
    using namespace emu;
    Thread* me = rt.current;
    Warp* warp = warp_of(me);
    const unsigned bit = 1u << lane_of(me);
    // Where the last to come gave the same site and mask, and all who wait are named, everything was checked for him.
    const bool as_before =
        warp->site == site && warp->mask == mask && !(warp->waiting & ~mask) && warp->waiting && (mask & bit);
    if (!as_before) check_mask(me, warp, site, mask);
    warp->site = site, warp->mask = mask, warp->waiting |= bit;
    me->site = site, me->mask = mask, me->operation = operation;
    me->value = value, me->lane = lane, me->width = width;
    if (mask & ~warp->waiting)
        wait_as(me, AT_WARP);
    else
        finish_warp(me, warp);
    return me->result;
}
}

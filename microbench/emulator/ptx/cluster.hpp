// The C++ bodies of cuda/ptx/cluster.cuh.
#pragma once

namespace ptx {

inline dim dim_of(emulator::Dim3 d) { return {d.x, d.y, d.z}; }

inline unsigned cluster_rank() { return emulator::place->rank; }
inline unsigned cluster_size() { return emulator::cluster_blocks; }
inline dim block_in_cluster() { return dim_of(emulator::place->in_cluster); }
inline dim cluster_dim() { return dim_of(emulator::cluster_dim); }
inline dim cluster_index() { return dim_of(emulator::place->cluster); }

inline void cluster_arrive() { emulator::cluster_arrive(false); }
inline void cluster_arrive_relaxed() { emulator::cluster_arrive(true); }
using emulator::cluster_wait, emulator::map_shared;
inline void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

inline unsigned load_cluster(unsigned address) { return emulator::loaded<unsigned>(emulator::load_cluster, address); }
inline void load_cluster4(unsigned (&values)[4], unsigned address) {
  emulator::load_cluster(address, values, sizeof values);
}
inline void store_cluster(unsigned address, unsigned value) { emulator::store_cluster(address, &value, sizeof value); }
inline void store_cluster4(unsigned address, const unsigned (&values)[4]) {
  emulator::store_cluster(address, values, sizeof values);
}
inline void add_cluster(unsigned address, unsigned value) { emulator::add_cluster(address, value); }
inline void store_async(unsigned address, unsigned value, unsigned bar) {
  emulator::store_async(address, &value, sizeof value, bar);
}
inline void store_async4(unsigned address, const unsigned (&values)[4], unsigned bar) {
  emulator::store_async(address, values, sizeof values, bar);
}

}  // namespace ptx

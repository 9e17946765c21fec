// Prints what CuTe says of fragments, swizzled tiles and descriptors; the tests compare the emulator with it.
#include <cute/atom/mma_atom.hpp>
#include <cute/atom/mma_traits_sm70.hpp>
#include <cute/atom/mma_traits_sm80.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cute/tensor.hpp>

using namespace cute;

// One line: the name, then the linear index into the matrix, first mode fastest, of element (thread, i).
template <class Layout>
void print_fragment(const char* name, Layout layout, int threads, int elements) {
  std::printf("%s", name);
  for (int thread = 0; thread < threads; ++thread)
    for (int i = 0; i < elements; ++i) std::printf(" %d", static_cast<int>(layout(thread, i)));
  std::printf("\n");
}

template <class Traits>
void print_mma(const std::string& name, int threads) {
  using A = typename Traits::ALayout;
  using B = typename Traits::BLayout;
  using C = typename Traits::CLayout;
  print_fragment((name + ".a").c_str(), A{}, threads, size<1>(A{}));
  print_fragment((name + ".b").c_str(), B{}, threads, size<1>(B{}));
  print_fragment((name + ".c").c_str(), C{}, threads, size<1>(C{}));
}

// Strides of the descriptor, then the byte of element (i, k), of a tile of 64 x 16 cut from one of 64 x 64.
// Building a descriptor on a CPU prints a complaint that it has no shared address: a line of its own.
template <GMMA::Major Major, class Atom>
void print_tile(const char* name, Atom atom) {
  auto tile = tile_to_shape(atom, Shape<_64, _64>{});
  auto plain = as_position_independent_swizzle_layout(tile);
  alignas(1024) static half_t memory[64 * 64];
  auto tensor = make_tensor(make_smem_ptr(memory), tile);
  auto descriptor = SM90::GMMA::make_gmma_desc<Major>(local_tile(tensor, Shape<_64, _16>{}, make_coord(0, 0)));
  std::printf("\n%s %d %d", name, descriptor.bitfield.leading_byte_offset_ * 16,
              descriptor.bitfield.stride_byte_offset_ * 16);
  for (int i = 0; i < 64; ++i)
    for (int k = 0; k < 16; ++k) std::printf(" %d", static_cast<int>(plain(i, k)) * 2);
  std::printf("\n");
}

int main() {
  print_mma<MMA_Traits<SM70_8x8x4_F32F16F16F32_TN>>("m8n8k4.row.col.f32", 8);
  print_mma<MMA_Traits<SM70_8x8x4_F32F16F16F32_NT>>("m8n8k4.col.row.f32", 8);
  print_mma<MMA_Traits<SM70_8x8x4_F32F16F16F32_NN>>("m8n8k4.col.col.f32", 8);
  print_mma<MMA_Traits<SM70_8x8x4_F32F16F16F32_TT>>("m8n8k4.row.row.f32", 8);
  print_mma<MMA_Traits<SM70_8x8x4_F16F16F16F16_TN>>("m8n8k4.row.col.f16", 8);
  print_mma<MMA_Traits<SM80_16x8x16_F32F16F16F32_TN>>("m16n8k16", 32);
  print_mma<MMA_Traits<SM80_16x8x8_F32F16F16F32_TN>>("m16n8k8", 32);
  print_mma<MMA_Traits<SM80_16x8x8_F32TF32TF32F32_TN>>("m16n8k8.tf32", 32);
  print_fragment("wgmma.c.64", SM90::GMMA::CLayout_64xN<64>{}, 128, 32);
  print_fragment("wgmma.c.256", SM90::GMMA::CLayout_64xN<256>{}, 128, 128);
  print_fragment("wgmma.a", SM90::GMMA::ALayout_64x16{}, 128, 8);
  print_tile<GMMA::Major::K>("tile.K.0", SM90::GMMA::Layout_K_INTER_Atom<half_t>{});
  print_tile<GMMA::Major::K>("tile.K.32", SM90::GMMA::Layout_K_SW32_Atom<half_t>{});
  print_tile<GMMA::Major::K>("tile.K.64", SM90::GMMA::Layout_K_SW64_Atom<half_t>{});
  print_tile<GMMA::Major::K>("tile.K.128", SM90::GMMA::Layout_K_SW128_Atom<half_t>{});
  print_tile<GMMA::Major::MN>("tile.MN.0", SM90::GMMA::Layout_MN_INTER_Atom<half_t>{});
  print_tile<GMMA::Major::MN>("tile.MN.32", SM90::GMMA::Layout_MN_SW32_Atom<half_t>{});
  print_tile<GMMA::Major::MN>("tile.MN.64", SM90::GMMA::Layout_MN_SW64_Atom<half_t>{});
  print_tile<GMMA::Major::MN>("tile.MN.128", SM90::GMMA::Layout_MN_SW128_Atom<half_t>{});
}

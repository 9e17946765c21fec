// Prints what CuTe says of fragments, swizzled tiles and descriptors; the tests compare the emulator with it.
#include <cute/atom/mma_atom.hpp>
#include <cute/atom/mma_traits_sm70.hpp>
#include <cute/atom/mma_traits_sm80.hpp>
#include <cute/atom/mma_traits_sm89.hpp>
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

// Strides of the descriptor, then the byte of element (i, k), of a tile of 64 rows and 32 bytes cut from one of 64 rows
// and 128 bytes (of 64 rows and 64 columns where it is MN-major). Building a descriptor on a CPU prints a complaint
// that it has no shared address: a line of its own.
template <class T, GMMA::Major Major, class Atom>
void print_tile(const char* name, Atom atom) {
  constexpr int kBytes = sizeof(T), kDepth = 32 / kBytes;
  auto tile = tile_to_shape(atom, Shape<_64, Int<128 / kBytes>>{});
  auto plain = as_position_independent_swizzle_layout(tile);
  alignas(1024) static T memory[64 * 128 / kBytes];
  auto tensor = make_tensor(make_smem_ptr(memory), tile);
  auto descriptor = SM90::GMMA::make_gmma_desc<Major>(local_tile(tensor, Shape<_64, Int<kDepth>>{}, make_coord(0, 0)));
  std::printf("\n%s %d %d", name, descriptor.bitfield.leading_byte_offset_ * 16,
              descriptor.bitfield.stride_byte_offset_ * 16);
  for (int i = 0; i < 64; ++i)
    for (int k = 0; k < kDepth; ++k) std::printf(" %d", static_cast<int>(plain(i, k)) * kBytes);
  std::printf("\n");
}

// K-major tiles under every swizzle.
template <class T>
void print_tiles(const std::string& name) {
  constexpr auto kMajor = GMMA::Major::K;
  print_tile<T, kMajor>((name + ".0").c_str(), SM90::GMMA::Layout_K_INTER_Atom<T>{});
  print_tile<T, kMajor>((name + ".32").c_str(), SM90::GMMA::Layout_K_SW32_Atom<T>{});
  print_tile<T, kMajor>((name + ".64").c_str(), SM90::GMMA::Layout_K_SW64_Atom<T>{});
  print_tile<T, kMajor>((name + ".128").c_str(), SM90::GMMA::Layout_K_SW128_Atom<T>{});
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
  print_mma<MMA_Traits<SM80_16x8x16_F16F16F16F16_TN>>("m16n8k16.f16.f16", 32);
  print_mma<MMA_Traits<SM80_16x8x4_F32TF32TF32F32_TN>>("m16n8k4.tf32.f32", 32);
  print_mma<MMA_Traits<SM80_16x8x16_S32S8S8S32_TN>>("m16n8k16.s8.s32", 32);
  print_mma<MMA_Traits<SM80_16x8x32_S32S8S8S32_TN>>("m16n8k32.s8.s32", 32);
  print_mma<MMA_Traits<SM80_16x8x32_S32U8S8S32_TN>>("m16n8k32.u8_s8.s32", 32);
  print_mma<MMA_Traits<SM89_16x8x32_F32E4M3E5M2F32_TN>>("m16n8k32.e4m3_e5m2.f32", 32);
  print_mma<MMA_Traits<SM89_16x8x32_F16E4M3E4M3F16_TN>>("m16n8k32.e4m3.f16", 32);
  print_fragment("wgmma.a.8bit", SM90::GMMA::ALayout_64x32{}, 128, 16);
  print_fragment("wgmma.a.tf32", SM90::GMMA::ALayout_64x8{}, 128, 4);
  print_fragment("wgmma.c.64", SM90::GMMA::CLayout_64xN<64>{}, 128, 32);
  print_fragment("wgmma.c.256", SM90::GMMA::CLayout_64xN<256>{}, 128, 128);
  print_fragment("wgmma.a", SM90::GMMA::ALayout_64x16{}, 128, 8);
  print_tiles<half_t>("tile.K");
  print_tiles<uint8_t>("tile.8bit");
  print_tiles<tfloat32_t>("tile.tf32");
  print_tile<half_t, GMMA::Major::MN>("tile.MN.0", SM90::GMMA::Layout_MN_INTER_Atom<half_t>{});
  print_tile<half_t, GMMA::Major::MN>("tile.MN.32", SM90::GMMA::Layout_MN_SW32_Atom<half_t>{});
  print_tile<half_t, GMMA::Major::MN>("tile.MN.64", SM90::GMMA::Layout_MN_SW64_Atom<half_t>{});
  print_tile<half_t, GMMA::Major::MN>("tile.MN.128", SM90::GMMA::Layout_MN_SW128_Atom<half_t>{});
}

// Prints what CuTe says of tcgen05: descriptors, tiles, and what lies where in tensor memory.
#include <cute/arch/util.hpp>  // before what calls it from a template
#include <cute/arch/mma_sm100_desc.hpp>
#include <cute/atom/copy_traits_sm100.hpp>
#include <cute/atom/mma_atom.hpp>
#include <cute/atom/mma_traits_sm100.hpp>
#include <cute/tensor.hpp>

using namespace cute;
using UMMA::Major;

template <class A, class B, int M, int N, Major AMajor, Major BMajor>
void print_instruction(const char* name) {
  auto made = UMMA::make_instr_desc<A, B, float, M, N, AMajor, BMajor>();
  std::printf("\ninstruction.%s.%d.%d.%s.%s %u\n", name, M, N, AMajor == Major::K ? "K" : "MN",
              BMajor == Major::K ? "K" : "MN", made.desc_);
}

template <class A, class B>
void print_instructions(const char* name) {
  print_instruction<A, B, 64, 8, Major::K, Major::K>(name);
  print_instruction<A, B, 128, 256, Major::K, Major::MN>(name);
  print_instruction<A, B, 128, 64, Major::MN, Major::K>(name);
  print_instruction<A, B, 256, 32, Major::MN, Major::MN>(name);
}

template <class T, class Factor, int M, int N>
void print_scaled(const char* name) {
  auto made = UMMA::make_instr_desc_block_scaled<T, T, float, Factor, M, N, Major::K, Major::K>();
  std::printf("\nscaled.%s.%d.%d %u\n", name, M, N, made.desc_);
}

// Lane, and byte of the row of tensor memory, of the factor of element k of each row: CuTe counts factors of 8 bits, of
// which a lane holds four to a column. Copies of them come behind all rows.
template <class Fragment, int PerScale, int Depth, int Rows>
void print_factors(const char* name) {
  constexpr int kFactors = Depth / PerScale;
  auto layout = Fragment::make(Shape<Shape<Int<Rows>, Shape<Int<PerScale>, Int<kFactors>>>, _1, _1>{}).layout();
  std::printf("\nfactors.%s.%d", name, Rows);
  for (int row = 0; row < Rows; ++row)
    for (int factor = 0; factor < kFactors; ++factor) {
      auto inner = make_coord(row, make_coord(0, factor));
      std::printf(" %d", static_cast<int>(layout(make_coord(inner, 0, 0))));
    }
  std::printf("\n");
}

// The descriptor, then the byte of element (i, k), of a tile of 64 rows of 32 bytes cut from a larger one.
template <Major major, class T, class Atom>
void print_tile(const char* name, Atom atom) {
  constexpr int kDepth = 32 / sizeof(T);
  auto tile = tile_to_shape(atom, Shape<_128, _128>{});
  auto plain = as_position_independent_swizzle_layout(tile);
  alignas(1024) static T memory[128 * 128];
  auto tensor = make_tensor(make_smem_ptr(memory), tile);
  auto cut = local_tile(tensor, Shape<_64, Int<kDepth>>{}, make_coord(0, 0));
  auto descriptor = UMMA::make_umma_desc<major>(cut);
  descriptor.start_address_ = 0;
  std::printf("\ntile.%s.%s %llu", sizeof(T) == 1 ? "8" : "16", name,
              static_cast<unsigned long long>(descriptor.desc_));
  for (int i = 0; i < 64; ++i)
    for (int k = 0; k < kDepth; ++k) std::printf(" %d", static_cast<int>(plain(i, k)) * static_cast<int>(sizeof(T)));
  std::printf("\n");
}

template <class T>
void print_tiles() {
  print_tile<Major::K, T>("K.0", UMMA::Layout_K_INTER_Atom<T>{});
  print_tile<Major::K, T>("K.32", UMMA::Layout_K_SW32_Atom<T>{});
  print_tile<Major::K, T>("K.64", UMMA::Layout_K_SW64_Atom<T>{});
  print_tile<Major::K, T>("K.128", UMMA::Layout_K_SW128_Atom<T>{});
  print_tile<Major::MN, T>("MN.0", UMMA::Layout_MN_INTER_Atom<T>{});
  print_tile<Major::MN, T>("MN.32", UMMA::Layout_MN_SW32_Atom<T>{});
  print_tile<Major::MN, T>("MN.64", UMMA::Layout_MN_SW64_Atom<T>{});
  print_tile<Major::MN, T>("MN.128", UMMA::Layout_MN_SW128_Atom<T>{});
}

// CuTe counts tensor memory in elements of T: 2^16 columns of 32 bits to a lane.
template <class T>
void print_address(int offset) {
  constexpr int kToColumn = 4 / sizeof(T);
  std::printf(" %d %d", offset / (65536 * kToColumn), offset % (65536 * kToColumn));
}

// Lane and column, counted in elements, of element (i, j) of an operand in tensor memory.
template <class Fragment, class T, int Rows, int Columns>
void print_operand(const char* name) {
  auto layout = Fragment::make(Shape<Shape<Int<Rows>, Int<Columns>>, _1, _1>{}).layout();
  std::printf("\noperand.%s.%d", name, Rows);
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Columns; ++j) print_address<T>(static_cast<int>(layout(make_coord(make_coord(i, j), 0, 0))));
  std::printf("\n");
}

// Lane and column of each register of each thread.
template <class Load>
void print_load(const char* name, int registers) {
  using Traits = Copy_Traits<Load>;
  typename Traits::ValID places{};
  typename Traits::DstLayout bits{};
  std::printf("\nload.%s.%d", name, registers);
  for (int thread = 0; thread < 32; ++thread)
    for (int i = 0; i < registers; ++i) print_address<uint32_t>(static_cast<int>((places(bits(thread, 32 * i)) / 32)));
  std::printf("\n");
}

// Of each word that a copy writes: its row and column in the source, and its lane and column in tensor memory. CuTe
// counts the bits of the source with `group` rows fastest, then the bits of a row, then the next group.
template <class Copy>
void print_copy(const char* name, int group, int row_bits) {
  using Traits = Copy_Traits<Copy>;
  typename Traits::ValID places{};
  typename Traits::SrcLayout source{};
  typename Traits::DstLayout bits{};
  std::printf("\ncopy.%s", name);
  for (int i = 0; i < size<1>(bits); ++i) {
    const int from = static_cast<int>(source(0, i)), bit = from / group % row_bits;
    if (bit % 32) continue;
    std::printf(" %d %d", from % group + from / (group * row_bits) * group, bit / 32);
    print_address<uint32_t>(static_cast<int>(places(bits(0, i)) / 32));
  }
  std::printf("\n");
}

int main() {
  print_instructions<half_t, half_t>("f16.f16");
  print_instructions<bfloat16_t, bfloat16_t>("bf16.bf16");
  print_instructions<float_e4m3_t, float_e5m2_t>("e4m3.e5m2");
  print_instructions<float_e5m2_t, float_e4m3_t>("e5m2.e4m3");
  print_instructions<detail::float_e2m3_unpacksmem_t, detail::float_e3m2_unpacksmem_t>("e2m3.e3m2");
  print_instructions<detail::float_e2m1_unpacksmem_t, float_e4m3_t>("padded_e2m1.e4m3");
  print_scaled<float_e4m3_t, float_ue8m0_t, 128, 8>("mxf8.ue8m0");
  print_scaled<float_e4m3_t, float_ue8m0_t, 256, 256>("mxf8.ue8m0");
  print_scaled<float_e2m1_t, float_ue8m0_t, 128, 96>("mxf4.ue8m0");
  print_scaled<float_e2m1_t, float_ue4m3_t, 256, 32>("nvf4.ue4m3");
  print_factors<UMMA::tmem_sf_frg<float_ue8m0_t, 32, 1, true>, 32, 32, 128>("mxf8.a");
  print_factors<UMMA::tmem_sf_frg<float_ue8m0_t, 32, 1, true>, 32, 64, 128>("mxf4.a");
  print_factors<UMMA::tmem_sf_frg<float_ue4m3_t, 16, 1, false>, 16, 64, 256>("nvf4.b");
  using Pair = MMA_Traits<SM100_MMA_MXF4_2x1SM_SS<float_e2m1_t, float_e2m1_t, float, float_ue4m3_t, 128, 192, 16,
                                                  Major::K, Major::K>>;
  print_factors<Pair::FrgTypeSFA, 16, 64, 64>("nvf4.pair_a");
  print_factors<Pair::FrgTypeSFB, 16, 64, 192>("nvf4.pair_b");
  print_tiles<half_t>();
  print_tiles<float_e4m3_t>();
  print_operand<UMMA::tmem_frg_1sm<float>, float, 64, 16>("d");
  print_operand<UMMA::tmem_frg_1sm<float>, float, 128, 16>("d");
  print_operand<UMMA::tmem_frg_2sm<float>, float, 64, 32>("pair_d");
  print_operand<UMMA::tmem_frg_2sm<float>, float, 128, 32>("pair_d");
  print_operand<UMMA::tmem_frg_1sm<half_t, half_t>, half_t, 64, 16>("a16");
  print_operand<UMMA::tmem_frg_1sm<half_t, half_t>, half_t, 128, 16>("a16");
  print_operand<UMMA::tmem_frg_1sm<uint8_t, uint8_t>, uint8_t, 128, 32>("a8");
  print_load<SM100::TMEM::LOAD::SM100_TMEM_LOAD_32dp32b4x>("32x32b", 4);
  print_load<SM100::TMEM::LOAD::SM100_TMEM_LOAD_32dp32b32x>("32x32b", 32);
  print_load<SM100::TMEM::LOAD::SM100_TMEM_LOAD_16dp64b1x>("16x64b", 1);
  print_load<SM100::TMEM::LOAD::SM100_TMEM_LOAD_16dp64b8x>("16x64b", 8);
  print_load<SM100::TMEM::LOAD::SM100_TMEM_LOAD_16dp128b1x>("16x128b", 2);
  print_load<SM100::TMEM::LOAD::SM100_TMEM_LOAD_16dp128b16x>("16x128b", 32);
  print_load<SM100::TMEM::LOAD::SM100_TMEM_LOAD_16dp256b1x>("16x256b", 4);
  print_load<SM100::TMEM::LOAD::SM100_TMEM_LOAD_16dp256b8x>("16x256b", 32);
  print_load<SM100::TMEM::LOAD::SM100_TMEM_LOAD_16dp32b1x>("16x32bx2", 1);
  print_load<SM100::TMEM::LOAD::SM100_TMEM_LOAD_16dp32b8x>("16x32bx2", 8);
  print_copy<SM100::TMEM::UTCCP::SM100_UTCCP_128dp256bit_1cta>("tcgen05_cp_128x256b", 128, 256);
  print_copy<SM100::TMEM::UTCCP::SM100_UTCCP_128dp128bit_1cta>("tcgen05_cp_128x128b", 128, 128);
  print_copy<SM100::TMEM::UTCCP::SM100_UTCCP_2x64dp128bitlw0213_1cta>("tcgen05_cp_64x128b_02_13", 64, 128);
  print_copy<SM100::TMEM::UTCCP::SM100_UTCCP_2x64dp128bitlw0123_1cta>("tcgen05_cp_64x128b_01_23", 32, 128);
  print_copy<SM100::TMEM::UTCCP::SM100_UTCCP_4x32dp128bit_1cta>("tcgen05_cp_32x128b", 32, 128);
}

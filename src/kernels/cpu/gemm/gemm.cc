#include "kernels/cpu/gemm/gemm.h"

#include <algorithm>

#include "base/system/mapped_file.h"
#include "base/thread_pool.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {
namespace {

bool is_plain(const GemmArgs& args) {
  const Epilogue& e = args.epilogue;
  return args.alpha == 1.0F && e.residual == nullptr && e.bias == nullptr && e.act.op == Unary::none;
}

// Vector times unpacked matrix, for which packing would cost more than the product. False if neither form applies.
bool gemv(const GemmKernels& kernels, const GemmArgs& args) {
  if (args.packed_a != nullptr || args.packed_b != nullptr || args.like_packed || args.k == 0) return false;
  const Strides sa = strides_of(args.lda, args.trans_a);
  const Strides sb = strides_of(args.ldb, args.trans_b);
  const std::int64_t grain = std::max<std::int64_t>(1, 65536 / args.k);
  constexpr std::int64_t kPiece = 512;
  if (args.m == 1 && (sa.column == 1 || args.k == 1)) {
    const bool rows = sb.column == 1;
    parallel_for((args.n + kPiece - 1) / kPiece, std::max<std::int64_t>(1, grain / kPiece),
                 [&](std::int64_t begin, std::int64_t end) {
                   float y[kPiece];
                   for (std::int64_t p = begin; p < end; ++p) {
                     const std::int64_t n0 = p * kPiece;
                     const std::int64_t nb = std::min(kPiece, args.n - n0);
                     if (rows) {
                       kernels.gemv_rows(args.a, args.b + n0, args.ldb, args.k, nb, y);
                     } else {
                       kernels.gemv_dots(args.a, args.b + n0 * sb.column, args.ldb, args.k, nb, y, 1);
                     }
                     gemm_finish(kernels, args, {0, 1, n0, nb}, y, kPiece);
                   }
                 });
    return true;
  }
  if (args.n == 1 && !args.trans_a && (sb.row == 1 || args.k == 1)) {
    // Finishing 64 sums of 9 products takes four times as long as the sums, so that plain ones go where they belong.
    const bool plain = is_plain(args);
    parallel_for(args.m, std::min<std::int64_t>(grain, kPiece), [&](std::int64_t begin, std::int64_t end) {
      if (plain) {
        kernels.gemv_dots(args.b, args.a + begin * args.lda, args.lda, args.k, end - begin, args.c + begin * args.ldc, args.ldc);
        return;
      }
      float y[kPiece];
      for (std::int64_t i = begin; i < end; i += kPiece) {
        const std::int64_t rows = std::min(kPiece, end - i);
        kernels.gemv_dots(args.b, args.a + i * args.lda, args.lda, args.k, rows, y, 1);
        gemm_finish(kernels, args, {i, rows, 0, 1}, y, 1);
      }
    });
    return true;
  }
  return false;
}

}  // namespace

std::size_t packed_b_bytes(std::int64_t k, std::int64_t n) {
  return to_size(k) * to_size(round_up(n, gemm_kernels().nr)) * sizeof(float);
}

void pack_b_f32(const void* b, std::int64_t ldb, bool trans, std::int64_t k, std::int64_t n, float scale, float* packed) {
  if (k == 0 || n == 0) return;
  const GemmKernels& kernels = gemm_kernels();
  const Cuts ks = k_cuts(k);
  const Strides s = strides_of(ldb, trans);
  const std::int64_t padded = round_up(n, kernels.nr);
  const auto* from = static_cast<const char*>(b);
  // Each thread packs a few panels at a time. Long stretches of the source are finished one after the other, so that pages of
  // weights in a mapped file can be released at once: otherwise packing would hold large weights twice.
  constexpr std::int64_t kColumns = 128, kStretch = std::int64_t{8} << 20;
  const std::int64_t groups = (n + kColumns - 1) / kColumns;
  const auto pack = [&](std::int64_t i, std::int64_t group) {
    const std::int64_t n0 = group * kColumns;
    kernels.pack_b_panels(from + (ks.begin(i) * s.row + n0 * s.column) * 4, s.row, s.column, ks.size(i),
                          std::min(kColumns, n - n0), scale, packed + ks.begin(i) * padded + n0 * ks.size(i));
  };
  const std::int64_t line = (trans ? k : n) * 4;  // bytes
  if (trans) {
    const std::int64_t some = std::max<std::int64_t>(current_pool().threads(), kStretch / (line * kColumns));
    for (std::int64_t g = 0; g < groups; g += some) {
      const std::int64_t end = std::min(groups, g + some);
      parallel_for(end - g, 1, [&](std::int64_t begin, std::int64_t stop) {
        for (std::int64_t group = g + begin; group < g + stop; ++group) {
          for (std::int64_t i = 0; i < ks.parts; ++i) pack(i, group);
        }
      });
      if (some < groups)
        release_mapped_pages(from + g * kColumns * ldb * 4,
                             to_size((std::min(n, end * kColumns) - g * kColumns - 1) * ldb * 4 + line));
    }
    return;
  }
  for (std::int64_t i = 0; i < ks.parts; ++i) {
    parallel_for(groups, 1, [&](std::int64_t begin, std::int64_t stop) {
      for (std::int64_t group = begin; group < stop; ++group) pack(i, group);
    });
    if (line * k > kStretch) release_mapped_pages(from + ks.begin(i) * ldb * 4, to_size((ks.size(i) - 1) * ldb * 4 + line));
  }
}

void pack_a_f32(const void* a, std::int64_t lda, bool trans, std::int64_t m, std::int64_t k, float scale, float* packed) {
  if (m == 0 || k == 0) return;
  const GemmKernels& kernels = gemm_kernels();
  const Cuts ks = k_cuts(k);
  const Cuts tiles(m, kernels.mr);
  const Strides s = strides_of(lda, trans);
  const std::int64_t grain = std::max<std::int64_t>(1, 65536 / (k * kernels.mr));
  parallel_for(ks.parts * tiles.parts, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t kb = at / tiles.parts;
      const std::int64_t i = at % tiles.parts;
      kernels.pack_a_tile(static_cast<const char*>(a) + (tiles.begin(i) * s.row + ks.begin(kb) * s.column) * 4, s.row, s.column,
                          tiles.size(i), ks.size(kb), scale, packed + ks.begin(kb) * m + tiles.begin(i) * ks.size(kb));
    }
  });
}

void gemm_f32(const GemmArgs& args) { gemm_batch_f32(args, 1, nullptr, nullptr, nullptr); }

void gemm_batch_f32(const GemmArgs& args, std::int64_t batch, const std::int64_t* a_offsets, const std::int64_t* b_offsets,
                    const std::int64_t* c_offsets) {
  if (args.m <= 0 || args.n <= 0 || batch <= 0) return;
  const GemmKernels& kernels = gemm_kernels();
  const auto product = [&](std::int64_t i) {
    GemmArgs one = args;
    const std::int64_t a = a_offsets != nullptr ? a_offsets[i] : 0;
    const std::int64_t b = b_offsets != nullptr ? b_offsets[i] : 0;
    const std::int64_t c = c_offsets != nullptr ? c_offsets[i] : 0;
    if (one.a != nullptr) one.a += a;
    if (one.packed_a != nullptr) one.packed_a += a;
    if (one.b != nullptr) one.b += b;
    if (one.packed_b != nullptr) one.packed_b += b;
    one.c += c;
    if (one.epilogue.residual != nullptr) one.epilogue.residual += c;
    return one;
  };
  if (batch == 1 && gemv(kernels, product(0))) return;
  TaskGrid grid = choose_float_grid(kernels, args, batch);
  // One part for each thread, which finds the data of its previous product in its cache.
  if (args.sweep != 0) grid = {1, std::min<std::int64_t>(grid.rows * grid.columns, current_pool().threads())};
  const std::int64_t per = grid.rows * grid.columns;
  const RowUnits units(kernels, args);
  const std::int64_t panels = (args.n + kernels.nr - 1) / kernels.nr;
  const Cuts row_cuts(units.count(), (units.count() + grid.rows - 1) / grid.rows);
  const Cuts column_cuts(panels, (panels + grid.columns - 1) / grid.columns);
  const double work =
      static_cast<double>(args.m) * static_cast<double>(args.n) * static_cast<double>(args.k) / static_cast<double>(per);
  const auto grain = static_cast<std::int64_t>(std::clamp(100000.0 / std::max(work, 1.0), 1.0, 1e6));
  const std::int64_t tasks = batch * row_cuts.parts * column_cuts.parts;
  parallel_for(tasks, per > 1 ? 1 : grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t per_product = row_cuts.parts * column_cuts.parts;
      const GemmArgs one = product(i / per_product);
      const std::int64_t cell = i % per_product;
      const std::int64_t r = cell / column_cuts.parts;
      const std::int64_t c = cell % column_cuts.parts;
      if (per_product == 1 && gemv(kernels, one)) continue;
      gemm_block(kernels, one, nullptr, units.begin(row_cuts.begin(r)), units.begin(row_cuts.begin(r + 1)),
                 column_cuts.begin(c) * kernels.nr, std::min(args.n, column_cuts.begin(c + 1) * kernels.nr));
    }
  });
}

}  // namespace sdx::cpu

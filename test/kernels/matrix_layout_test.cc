// The register layouts that kernels of every architecture use, against the documents: operands are filled, and sums read, by the
// kernels' maps; between them stands the instruction, whose elements are where the documents say, element by element.
#include "common/matrix_layout.hip.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace flydsl::kernels {
namespace {

struct Place {
  unsigned lane, index;  // a 16-bit element's number in the lane's registers, or a register of sums
};

// From the documents that matrix_layout.hip.h names: where A[i][k] is (B[k][i] alike) and where D[i][j] is. `copies` of operands
// lie 16 lanes apart.
struct DocumentedMfma {
  using Layout = MfmaLayout;
  static constexpr unsigned copies = 1;
  static Place operand(unsigned i, unsigned k) { return {i + k / 4 * 16, k % 4}; }
  static Place sum(unsigned i, unsigned j) { return {j + i / 4 * 16, i % 4}; }
};
struct DocumentedGfx11 {
  using Layout = WmmaLayoutGfx11;
  static constexpr unsigned copies = 2;
  static Place operand(unsigned i, unsigned k) { return {i, k}; }
  static Place sum(unsigned i, unsigned j) { return {j + i % 2 * 16, i / 2}; }
};
struct DocumentedGfx12 {
  using Layout = WmmaLayoutGfx12;
  static constexpr unsigned copies = 1;
  static Place operand(unsigned i, unsigned k) { return {i + k / 8 * 16, k % 8}; }
  static Place sum(unsigned i, unsigned j) { return {j + i / 8 * 16, i % 8}; }
};
struct DocumentedGfx1250 {
  using Layout = WmmaLayoutGfx1250;
  static constexpr unsigned copies = 1;
  static Place operand(unsigned i, unsigned k) { return {i + k / 8 % 2 * 16, k / 16 * 8 + k % 8}; }
  static Place sum(unsigned i, unsigned j) { return {j + i / 8 * 16, i % 8}; }
};

// Registers of a wave: lane by lane.
using Registers = std::vector<std::vector<int>>;
// Row by row, any size.
using Matrix = std::vector<std::vector<int>>;

Matrix random_matrix(unsigned rows, unsigned columns, unsigned seed) {
  std::mt19937 random(seed);
  Matrix matrix(rows, std::vector<int>(columns));
  for (auto &row : matrix)
    for (int &element : row) element = static_cast<int>(random() % 201) - 100;
  return matrix;
}

Matrix product(const Matrix &a, const Matrix &b) {
  Matrix d(a.size(), std::vector<int>(b[0].size()));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < b.size(); ++k)
      for (size_t j = 0; j < b[0].size(); ++j) d[i][j] += a[i][k] * b[k][j];
  return d;
}

template <class Documented>
class MatrixLayout : public testing::Test {
 protected:
  using Layout = typename Documented::Layout;

  // D = A B, all in registers.
  static Registers instruction(const Registers &a, const Registers &b) {
    const auto element = [](const Registers &of, unsigned i, unsigned k) {
      const Place at = Documented::operand(i, k);
      for (unsigned copy = 1; copy < Documented::copies; ++copy)
        EXPECT_EQ(of[at.lane + 16 * copy][at.index], of[at.lane][at.index]) << i << ' ' << k;
      return of[at.lane][at.index];
    };
    Registers d(Layout::lanes, std::vector<int>(Layout::sums));
    for (unsigned i = 0; i < 16; ++i)
      for (unsigned j = 0; j < 16; ++j) {
        const Place at = Documented::sum(i, j);
        for (unsigned k = 0; k < Layout::depth; ++k)
          d[at.lane][at.index] += element(a, i, k) * element(b, j, k);
      }
    return d;
  }

  // As load_operand of matrix_tile.hip.h fills it: row l % 16 of `rows`, whose elements are neighbours in k.
  static Registers operand(const Matrix &rows) {
    Registers result(Layout::lanes, std::vector<int>(Layout::elements));
    for (unsigned lane = 0; lane < Layout::lanes; ++lane)
      for (unsigned j = 0; j < Layout::elements; ++j)
        result[lane][j] = rows[lane % 16][Layout::k_of(lane, j)];
    return result;
  }
  static Matrix transposed(const Matrix &matrix) {
    Matrix result(matrix[0].size(), std::vector<int>(matrix.size()));
    for (size_t i = 0; i < matrix.size(); ++i)
      for (size_t j = 0; j < matrix[0].size(); ++j) result[j][i] = matrix[i][j];
    return result;
  }
};

using All = testing::Types<DocumentedMfma, DocumentedGfx11, DocumentedGfx12, DocumentedGfx1250>;
TYPED_TEST_SUITE(MatrixLayout, All);

TYPED_TEST(MatrixLayout, ProductsOfOperandsAreWhereSumsAreReadFrom) {
  using Layout = typename TypeParam::Layout;
  const Matrix a = random_matrix(16, Layout::depth, 1), b = random_matrix(Layout::depth, 16, 2);
  const Registers d = this->instruction(this->operand(a), this->operand(this->transposed(b)));
  const Matrix want = product(a, b);
  Matrix times(16, std::vector<int>(16));
  for (unsigned lane = 0; lane < Layout::lanes; ++lane)
    for (unsigned i = 0; i < Layout::sums; ++i) {
      const unsigned row = Layout::row_of(lane, i), column = lane % 16;
      EXPECT_EQ(d[lane][i], want[row][column]) << "lane " << lane << " sum " << i;
      ++times[row][column];
    }
  for (const auto &row : times)
    for (const int number : row) EXPECT_EQ(number, 1);
}

// As attention does: P^T = K Q^T, 16 keys a block, is the second operand of V^T P^T.
TYPED_TEST(MatrixLayout, SumsBecomeAnOperand) {
  using Layout = typename TypeParam::Layout;
  constexpr unsigned blocks = Layout::depth / 16;
  const Matrix k = random_matrix(Layout::depth, Layout::depth, 3);
  const Matrix q = random_matrix(16, Layout::depth, 4), v = random_matrix(16, Layout::depth, 5);
  std::vector<Registers> sums;
  for (unsigned block = 0; block < blocks; ++block) {
    const Matrix keys(k.begin() + 16 * block, k.begin() + 16 * (block + 1));
    sums.push_back(this->instruction(this->operand(keys), this->operand(q)));
  }
  Registers p(Layout::lanes, std::vector<int>(Layout::elements));
  for (unsigned lane = 0; lane < Layout::lanes; ++lane)
    for (unsigned j = 0; j < Layout::elements; ++j) {
      const SumSource source = Layout::source_of(lane, j);
      p[lane][j] = sums[source.block][source.of_other_half ? lane ^ 16 : lane][source.sum];
    }
  const Registers d = this->instruction(this->operand(v), p);
  const Matrix want = product(v, product(k, this->transposed(q)));
  for (unsigned lane = 0; lane < Layout::lanes; ++lane)
    for (unsigned i = 0; i < Layout::sums; ++i)
      EXPECT_EQ(d[lane][i], want[Layout::row_of(lane, i)][lane % 16]) << lane << ' ' << i;
}

// What load_operand and dropout rely on.
TYPED_TEST(MatrixLayout, NeighboursStandTogether) {
  using Layout = typename TypeParam::Layout;
  for (unsigned lane = 0; lane < Layout::lanes; ++lane) {
    for (unsigned j = 0; j < Layout::elements; ++j) {
      const unsigned first = j - j % Layout::run;
      EXPECT_EQ(Layout::k_of(lane, first) % Layout::run, 0u);
      EXPECT_EQ(Layout::k_of(lane, j), Layout::k_of(lane, first) + j % Layout::run);
    }
    constexpr unsigned together = Layout::row_of(0, 3) < 4 ? 4 : 2;
    for (unsigned i = 0; i < Layout::sums; ++i)
      EXPECT_EQ(Layout::row_of(lane, i) / 4, Layout::row_of(lane, i - i % together) / 4);
  }
}

}  // namespace
}  // namespace flydsl::kernels

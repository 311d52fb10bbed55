#include "planer.h"

#include <cmath>
#include <stdexcept>

namespace hollin {

namespace {

// The last pass always takes half a millimetre: it is the one that the customer feels.
constexpr double kFinishingPass = 0.5;

}  // namespace

int passes(double from_mm, double to_mm) {
    if (to_mm >= from_mm) {
        throw std::invalid_argument("a planer makes boards thinner");
    }
    const double rough = std::max(0.0, from_mm - to_mm - kFinishingPass);
    return static_cast<int>(std::ceil(rough / kMaxDepthPerPass)) + 1;
}

}  // namespace hollin

// Depth of cut of the planer, shared by the panel on the machine and the simulator.
#pragma once

namespace hollin {

/// Deepest cut in one pass, in millimetres; more makes the thicknesser throw boards back.
constexpr double kMaxDepthPerPass = 2.5;

/// Passes that bring a board from one thickness to another.
int passes(double from_mm, double to_mm);

}  // namespace hollin

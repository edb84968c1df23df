// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Made from rtl/regs/ferronic_window.rdl by `cargo xtask regs`: change that file, not this one.
//
// Offsets are bytes from the base of the window; `Lsb` and `Width` place a field in its
// register; `Reset` is left out where the value depends on parameters.

// Software uses constants that the RTL has no need of.
/* verilator lint_off UNUSEDPARAM */
package ferronic_window_pkg;

  localparam logic [15:0] FwBase = 16'h8000;
  localparam int unsigned FwBytes = 32768;

  // UUID0, ro
  localparam logic [15:0] FwUuid0Offset = 16'h000;
  localparam logic [31:0] FwUuid0Reset = 32'hf3770a1c;

  // UUID1, ro
  localparam logic [15:0] FwUuid1Offset = 16'h004;
  localparam logic [31:0] FwUuid1Reset = 32'h5e0d4c1b;

  // UUID2, ro
  localparam logic [15:0] FwUuid2Offset = 16'h008;
  localparam logic [31:0] FwUuid2Reset = 32'h9a55fe01;

  // UUID3, ro
  localparam logic [15:0] FwUuid3Offset = 16'h00c;
  localparam logic [31:0] FwUuid3Reset = 32'hf3770a1c;

  // VERSION, ro
  localparam logic [15:0] FwVersionOffset = 16'h010;
  localparam logic [31:0] FwVersionReset = 32'h00000001;
  localparam int unsigned FwVersionMinorLsb = 0;
  localparam int unsigned FwVersionMinorWidth = 16;
  localparam int unsigned FwVersionMajorLsb = 16;
  localparam int unsigned FwVersionMajorWidth = 16;

  // FEATURES, ro
  localparam logic [15:0] FwFeaturesOffset = 16'h014;
  localparam logic [31:0] FwFeaturesReset = 32'h00000007;
  localparam int unsigned FwFeaturesQueueCountersLsb = 0;
  localparam int unsigned FwFeaturesQueueCountersWidth = 1;
  localparam int unsigned FwFeaturesTimeBaseLsb = 1;
  localparam int unsigned FwFeaturesTimeBaseWidth = 1;
  localparam int unsigned FwFeaturesPairsInUseLsb = 2;
  localparam int unsigned FwFeaturesPairsInUseWidth = 1;

  // CAPS, ro
  localparam logic [15:0] FwCapsOffset = 16'h018;
  localparam int unsigned FwCapsQueuePairsLsb = 0;
  localparam int unsigned FwCapsQueuePairsWidth = 8;
  localparam int unsigned FwCapsDataBytesLsb = 8;
  localparam int unsigned FwCapsDataBytesWidth = 8;

  // CLOCK_HZ, ro
  localparam logic [15:0] FwClockHzOffset = 16'h01c;
  localparam logic [31:0] FwClockHzReset = 32'h07735940;

  // TIME_LO, ro
  localparam logic [15:0] FwTimeLoOffset = 16'h020;
  localparam logic [31:0] FwTimeLoReset = 32'h00000000;

  // TIME_HI, ro
  localparam logic [15:0] FwTimeHiOffset = 16'h024;
  localparam logic [31:0] FwTimeHiReset = 32'h00000000;

  // SNAPSHOT, wo
  localparam logic [15:0] FwSnapshotOffset = 16'h028;
  localparam int unsigned FwSnapshotQueueLsb = 0;
  localparam int unsigned FwSnapshotQueueWidth = 7;

  // PAIRS_IN_USE, rw
  localparam logic [15:0] FwPairsInUseOffset = 16'h02c;
  localparam logic [31:0] FwPairsInUseReset = 32'h00000001;
  localparam int unsigned FwPairsInUsePairsLsb = 0;
  localparam int unsigned FwPairsInUsePairsWidth = 7;

  // SNAP_QUEUE, ro
  localparam logic [15:0] FwSnapQueueOffset = 16'h030;
  localparam logic [31:0] FwSnapQueueReset = 32'h00000000;
  localparam int unsigned FwSnapQueueQueueLsb = 0;
  localparam int unsigned FwSnapQueueQueueWidth = 7;

  // SNAP_PACKETS_LO, ro
  localparam logic [15:0] FwSnapPacketsLoOffset = 16'h040;
  localparam logic [31:0] FwSnapPacketsLoReset = 32'h00000000;

  // SNAP_PACKETS_HI, ro
  localparam logic [15:0] FwSnapPacketsHiOffset = 16'h044;
  localparam logic [31:0] FwSnapPacketsHiReset = 32'h00000000;

  // SNAP_BYTES_LO, ro
  localparam logic [15:0] FwSnapBytesLoOffset = 16'h048;
  localparam logic [31:0] FwSnapBytesLoReset = 32'h00000000;

  // SNAP_BYTES_HI, ro
  localparam logic [15:0] FwSnapBytesHiOffset = 16'h04c;
  localparam logic [31:0] FwSnapBytesHiReset = 32'h00000000;

  // SNAP_STAMP_LO, ro
  localparam logic [15:0] FwSnapStampLoOffset = 16'h050;
  localparam logic [31:0] FwSnapStampLoReset = 32'h00000000;

  // SNAP_STAMP_HI, ro
  localparam logic [15:0] FwSnapStampHiOffset = 16'h054;
  localparam logic [31:0] FwSnapStampHiReset = 32'h00000000;

  // SNAP_DROPS, ro
  localparam logic [15:0] FwSnapDropsOffset = 16'h058;
  localparam logic [31:0] FwSnapDropsReset = 32'h00000000;

  // SNAP_INTERRUPTS, ro
  localparam logic [15:0] FwSnapInterruptsOffset = 16'h05c;
  localparam logic [31:0] FwSnapInterruptsReset = 32'h00000000;

  // RX_SHORT, ro
  localparam logic [15:0] FwRxShortOffset = 16'h080;
  localparam logic [31:0] FwRxShortReset = 32'h00000000;

  // RX_LONG, ro
  localparam logic [15:0] FwRxLongOffset = 16'h084;
  localparam logic [31:0] FwRxLongReset = 32'h00000000;

  // RX_ABORT, ro
  localparam logic [15:0] FwRxAbortOffset = 16'h088;
  localparam logic [31:0] FwRxAbortReset = 32'h00000000;

  // RX_NO_BUFFER, ro
  localparam logic [15:0] FwRxNoBufferOffset = 16'h08c;
  localparam logic [31:0] FwRxNoBufferReset = 32'h00000000;

  // RX_FIFO_FULL, ro
  localparam logic [15:0] FwRxFifoFullOffset = 16'h090;
  localparam logic [31:0] FwRxFifoFullReset = 32'h00000000;

  // TX_BAD_FRAME, ro
  localparam logic [15:0] FwTxBadFrameOffset = 16'h094;
  localparam logic [31:0] FwTxBadFrameReset = 32'h00000000;

  // PCIE_UNEXPECTED_CPL, ro
  localparam logic [15:0] FwPcieUnexpectedCplOffset = 16'h098;
  localparam logic [31:0] FwPcieUnexpectedCplReset = 32'h00000000;

  // PCIE_ERROR_CPL, ro
  localparam logic [15:0] FwPcieErrorCplOffset = 16'h09c;
  localparam logic [31:0] FwPcieErrorCplReset = 32'h00000000;

  // PCIE_POISONED, ro
  localparam logic [15:0] FwPciePoisonedOffset = 16'h0a0;
  localparam logic [31:0] FwPciePoisonedReset = 32'h00000000;

  // PCIE_TIMEOUT, ro
  localparam logic [15:0] FwPcieTimeoutOffset = 16'h0a4;
  localparam logic [31:0] FwPcieTimeoutReset = 32'h00000000;

  // PCIE_UNSUPPORTED_REQ, ro
  localparam logic [15:0] FwPcieUnsupportedReqOffset = 16'h0a8;
  localparam logic [31:0] FwPcieUnsupportedReqReset = 32'h00000000;

  // QUEUE_ERRORS, ro
  localparam logic [15:0] FwQueueErrorsOffset = 16'h0ac;
  localparam logic [31:0] FwQueueErrorsReset = 32'h00000000;

endpackage
/* verilator lint_on UNUSEDPARAM */

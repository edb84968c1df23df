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
  localparam logic [31:0] FwVersionReset = 32'h00000004;
  localparam int unsigned FwVersionMinorLsb = 0;
  localparam int unsigned FwVersionMinorWidth = 16;
  localparam int unsigned FwVersionMajorLsb = 16;
  localparam int unsigned FwVersionMajorWidth = 16;

  // FEATURES, ro
  localparam logic [15:0] FwFeaturesOffset = 16'h014;
  localparam int unsigned FwFeaturesQueueCountersLsb = 0;
  localparam int unsigned FwFeaturesQueueCountersWidth = 1;
  localparam int unsigned FwFeaturesTimeBaseLsb = 1;
  localparam int unsigned FwFeaturesTimeBaseWidth = 1;
  localparam int unsigned FwFeaturesPairsInUseLsb = 2;
  localparam int unsigned FwFeaturesPairsInUseWidth = 1;
  localparam int unsigned FwFeaturesLroLsb = 3;
  localparam int unsigned FwFeaturesLroWidth = 1;
  localparam int unsigned FwFeaturesTxEmptyLsb = 4;
  localparam int unsigned FwFeaturesTxEmptyWidth = 1;
  localparam int unsigned FwFeaturesSteeringLsb = 5;
  localparam int unsigned FwFeaturesSteeringWidth = 1;
  localparam int unsigned FwFeaturesFiltersLsb = 6;
  localparam int unsigned FwFeaturesFiltersWidth = 1;
  localparam int unsigned FwFeaturesCoalescingLsb = 7;
  localparam int unsigned FwFeaturesCoalescingWidth = 1;

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

  // RX_FILTERED, ro
  localparam logic [15:0] FwRxFilteredOffset = 16'h0b0;
  localparam logic [31:0] FwRxFilteredReset = 32'h00000000;

  // LRO_CAPS, ro
  localparam logic [15:0] FwLroCapsOffset = 16'h100;
  localparam int unsigned FwLroCapsContextsLsb = 0;
  localparam int unsigned FwLroCapsContextsWidth = 16;
  localparam int unsigned FwLroCapsMaxBuffersLsb = 16;
  localparam int unsigned FwLroCapsMaxBuffersWidth = 8;

  // LRO_PROFILE, rw
  localparam logic [15:0] FwLroProfileOffset = 16'h104;
  localparam logic [31:0] FwLroProfileReset = 32'h00000001;
  localparam int unsigned FwLroProfileProfileLsb = 0;
  localparam int unsigned FwLroProfileProfileWidth = 2;

  // LRO_GAP, rw
  localparam logic [15:0] FwLroGapOffset = 16'h108;
  localparam logic [31:0] FwLroGapReset = 32'h000030d4;
  localparam int unsigned FwLroGapCyclesLsb = 0;
  localparam int unsigned FwLroGapCyclesWidth = 23;

  // LRO_HOLD, rw
  localparam logic [15:0] FwLroHoldOffset = 16'h10c;
  localparam logic [31:0] FwLroHoldReset = 32'h0000c350;
  localparam int unsigned FwLroHoldCyclesLsb = 0;
  localparam int unsigned FwLroHoldCyclesWidth = 23;

  // LRO_MAX_BYTES, rw
  localparam logic [15:0] FwLroMaxBytesOffset = 16'h110;
  localparam logic [31:0] FwLroMaxBytesReset = 32'h0000ffff;
  localparam int unsigned FwLroMaxBytesBytesLsb = 0;
  localparam int unsigned FwLroMaxBytesBytesWidth = 16;

  // LRO_LOW_WATER, rw
  localparam logic [15:0] FwLroLowWaterOffset = 16'h114;
  localparam logic [31:0] FwLroLowWaterReset = 32'h00000000;
  localparam int unsigned FwLroLowWaterBuffersLsb = 0;
  localparam int unsigned FwLroLowWaterBuffersWidth = 7;

  // LRO_CLOSED_UNTRUSTED, ro
  localparam logic [15:0] FwLroClosedUntrustedOffset = 16'h140;
  localparam logic [31:0] FwLroClosedUntrustedReset = 32'h00000000;

  // LRO_CLOSED_IP_OPTIONS, ro
  localparam logic [15:0] FwLroClosedIpOptionsOffset = 16'h144;
  localparam logic [31:0] FwLroClosedIpOptionsReset = 32'h00000000;

  // LRO_CLOSED_FRAGMENT, ro
  localparam logic [15:0] FwLroClosedFragmentOffset = 16'h148;
  localparam logic [31:0] FwLroClosedFragmentReset = 32'h00000000;

  // LRO_CLOSED_EXTENSION, ro
  localparam logic [15:0] FwLroClosedExtensionOffset = 16'h14c;
  localparam logic [31:0] FwLroClosedExtensionReset = 32'h00000000;

  // LRO_CLOSED_MALFORMED, ro
  localparam logic [15:0] FwLroClosedMalformedOffset = 16'h150;
  localparam logic [31:0] FwLroClosedMalformedReset = 32'h00000000;

  // LRO_CLOSED_TRAILER, ro
  localparam logic [15:0] FwLroClosedTrailerOffset = 16'h154;
  localparam logic [31:0] FwLroClosedTrailerReset = 32'h00000000;

  // LRO_CLOSED_SUM, ro
  localparam logic [15:0] FwLroClosedSumOffset = 16'h158;
  localparam logic [31:0] FwLroClosedSumReset = 32'h00000000;

  // LRO_CLOSED_CANONICAL, ro
  localparam logic [15:0] FwLroClosedCanonicalOffset = 16'h15c;
  localparam logic [31:0] FwLroClosedCanonicalReset = 32'h00000000;

  // LRO_CLOSED_CONTROL, ro
  localparam logic [15:0] FwLroClosedControlOffset = 16'h160;
  localparam logic [31:0] FwLroClosedControlReset = 32'h00000000;

  // LRO_CLOSED_EMPTY, ro
  localparam logic [15:0] FwLroClosedEmptyOffset = 16'h164;
  localparam logic [31:0] FwLroClosedEmptyReset = 32'h00000000;

  // LRO_CLOSED_FIRST_BUFFER, ro
  localparam logic [15:0] FwLroClosedFirstBufferOffset = 16'h168;
  localparam logic [31:0] FwLroClosedFirstBufferReset = 32'h00000000;

  // LRO_CLOSED_MOVED, ro
  localparam logic [15:0] FwLroClosedMovedOffset = 16'h16c;
  localparam logic [31:0] FwLroClosedMovedReset = 32'h00000000;

  // LRO_CLOSED_HEADER, ro
  localparam logic [15:0] FwLroClosedHeaderOffset = 16'h170;
  localparam logic [31:0] FwLroClosedHeaderReset = 32'h00000000;

  // LRO_CLOSED_SEQUENCE, ro
  localparam logic [15:0] FwLroClosedSequenceOffset = 16'h174;
  localparam logic [31:0] FwLroClosedSequenceReset = 32'h00000000;

  // LRO_CLOSED_ID, ro
  localparam logic [15:0] FwLroClosedIdOffset = 16'h178;
  localparam logic [31:0] FwLroClosedIdReset = 32'h00000000;

  // LRO_CLOSED_LARGER, ro
  localparam logic [15:0] FwLroClosedLargerOffset = 16'h17c;
  localparam logic [31:0] FwLroClosedLargerReset = 32'h00000000;

  // LRO_CLOSED_LENGTH, ro
  localparam logic [15:0] FwLroClosedLengthOffset = 16'h180;
  localparam logic [31:0] FwLroClosedLengthReset = 32'h00000000;

  // LRO_CLOSED_BUFFERS, ro
  localparam logic [15:0] FwLroClosedBuffersOffset = 16'h184;
  localparam logic [31:0] FwLroClosedBuffersReset = 32'h00000000;

  // LRO_CLOSED_PUSH, ro
  localparam logic [15:0] FwLroClosedPushOffset = 16'h188;
  localparam logic [31:0] FwLroClosedPushReset = 32'h00000000;

  // LRO_CLOSED_SMALLER, ro
  localparam logic [15:0] FwLroClosedSmallerOffset = 16'h18c;
  localparam logic [31:0] FwLroClosedSmallerReset = 32'h00000000;

  // LRO_CLOSED_EVICTED, ro
  localparam logic [15:0] FwLroClosedEvictedOffset = 16'h190;
  localparam logic [31:0] FwLroClosedEvictedReset = 32'h00000000;

  // LRO_CLOSED_GAP, ro
  localparam logic [15:0] FwLroClosedGapOffset = 16'h194;
  localparam logic [31:0] FwLroClosedGapReset = 32'h00000000;

  // LRO_CLOSED_HOLD, ro
  localparam logic [15:0] FwLroClosedHoldOffset = 16'h198;
  localparam logic [31:0] FwLroClosedHoldReset = 32'h00000000;

  // LRO_CLOSED_LOW_WATER, ro
  localparam logic [15:0] FwLroClosedLowWaterOffset = 16'h19c;
  localparam logic [31:0] FwLroClosedLowWaterReset = 32'h00000000;

  // LRO_CLOSED_NO_BUFFER, ro
  localparam logic [15:0] FwLroClosedNoBufferOffset = 16'h1a0;
  localparam logic [31:0] FwLroClosedNoBufferReset = 32'h00000000;

  // LRO_CLOSED_STOPPED, ro
  localparam logic [15:0] FwLroClosedStoppedOffset = 16'h1a4;
  localparam logic [31:0] FwLroClosedStoppedReset = 32'h00000000;

  // LRO_OPENED, ro
  localparam logic [15:0] FwLroOpenedOffset = 16'h1b0;
  localparam logic [31:0] FwLroOpenedReset = 32'h00000000;

  // LRO_MERGED, ro
  localparam logic [15:0] FwLroMergedOffset = 16'h1b4;
  localparam logic [31:0] FwLroMergedReset = 32'h00000000;

  // RSS_CAPS, ro
  localparam logic [15:0] FwRssCapsOffset = 16'h200;
  localparam logic [31:0] FwRssCapsReset = 32'h3f280080;
  localparam int unsigned FwRssCapsTableEntriesLsb = 0;
  localparam int unsigned FwRssCapsTableEntriesWidth = 16;
  localparam int unsigned FwRssCapsKeyBytesLsb = 16;
  localparam int unsigned FwRssCapsKeyBytesWidth = 8;
  localparam int unsigned FwRssCapsTypesLsb = 24;
  localparam int unsigned FwRssCapsTypesWidth = 6;

  // RSS_TYPES, rw
  localparam logic [15:0] FwRssTypesOffset = 16'h204;
  localparam logic [31:0] FwRssTypesReset = 32'h00000000;
  localparam int unsigned FwRssTypesTypesLsb = 0;
  localparam int unsigned FwRssTypesTypesWidth = 6;

  // RSS_TABLE_BITS, rw
  localparam logic [15:0] FwRssTableBitsOffset = 16'h208;
  localparam logic [31:0] FwRssTableBitsReset = 32'h00000000;
  localparam int unsigned FwRssTableBitsBitsLsb = 0;
  localparam int unsigned FwRssTableBitsBitsWidth = 3;

  // RSS_UNCLASSIFIED, rw
  localparam logic [15:0] FwRssUnclassifiedOffset = 16'h20c;
  localparam logic [31:0] FwRssUnclassifiedReset = 32'h00000000;
  localparam int unsigned FwRssUnclassifiedPairLsb = 0;
  localparam int unsigned FwRssUnclassifiedPairWidth = 6;

  // RSS_APPLY, rw
  localparam logic [15:0] FwRssApplyOffset = 16'h210;
  localparam logic [31:0] FwRssApplyReset = 32'h00000000;
  localparam int unsigned FwRssApplyHashLsb = 0;
  localparam int unsigned FwRssApplyHashWidth = 1;
  localparam int unsigned FwRssApplySteerLsb = 1;
  localparam int unsigned FwRssApplySteerWidth = 1;

  // HASH_REPORT, rw
  localparam logic [15:0] FwHashReportOffset = 16'h214;
  localparam logic [31:0] FwHashReportReset = 32'h00000000;
  localparam int unsigned FwHashReportEnableLsb = 0;
  localparam int unsigned FwHashReportEnableWidth = 1;

  // RX_FOLLOW, rw
  localparam logic [15:0] FwRxFollowOffset = 16'h218;
  localparam logic [31:0] FwRxFollowReset = 32'h00001c01;
  localparam int unsigned FwRxFollowEnableLsb = 0;
  localparam int unsigned FwRxFollowEnableWidth = 1;
  localparam int unsigned FwRxFollowPeriodLsb = 8;
  localparam int unsigned FwRxFollowPeriodWidth = 6;

  // RX_FILTER, rw
  localparam logic [15:0] FwRxFilterOffset = 16'h220;
  localparam logic [31:0] FwRxFilterReset = 32'h00000001;
  localparam int unsigned FwRxFilterPromiscuousLsb = 0;
  localparam int unsigned FwRxFilterPromiscuousWidth = 1;
  localparam int unsigned FwRxFilterAllMulticastLsb = 1;
  localparam int unsigned FwRxFilterAllMulticastWidth = 1;
  localparam int unsigned FwRxFilterAllUnicastLsb = 2;
  localparam int unsigned FwRxFilterAllUnicastWidth = 1;
  localparam int unsigned FwRxFilterNoMulticastLsb = 3;
  localparam int unsigned FwRxFilterNoMulticastWidth = 1;
  localparam int unsigned FwRxFilterNoUnicastLsb = 4;
  localparam int unsigned FwRxFilterNoUnicastWidth = 1;
  localparam int unsigned FwRxFilterNoBroadcastLsb = 5;
  localparam int unsigned FwRxFilterNoBroadcastWidth = 1;
  localparam int unsigned FwRxFilterVlanLsb = 8;
  localparam int unsigned FwRxFilterVlanWidth = 1;

  // RX_FILTER_CAPS, ro
  localparam logic [15:0] FwRxFilterCapsOffset = 16'h224;
  localparam logic [31:0] FwRxFilterCapsReset = 32'h00000010;
  localparam int unsigned FwRxFilterCapsAddressesLsb = 0;
  localparam int unsigned FwRxFilterCapsAddressesWidth = 8;

  // RSS_KEY, wo, 10 of them
  localparam logic [15:0] FwRssKeyOffset = 16'h240;
  localparam logic [15:0] FwRssKeyStride = 16'h004;

  // RSS_TABLE, wo, 128 of them
  localparam logic [15:0] FwRssTableOffset = 16'h400;
  localparam logic [15:0] FwRssTableStride = 16'h004;
  localparam int unsigned FwRssTablePairLsb = 0;
  localparam int unsigned FwRssTablePairWidth = 6;

  // RX_ADDRESS_LO, wo, 16 of them
  localparam logic [15:0] FwRxAddressLoOffset = 16'h600;
  localparam logic [15:0] FwRxAddressLoStride = 16'h008;

  // RX_ADDRESS_HI, wo, 16 of them
  localparam logic [15:0] FwRxAddressHiOffset = 16'h604;
  localparam logic [15:0] FwRxAddressHiStride = 16'h008;
  localparam int unsigned FwRxAddressHiBytesLsb = 0;
  localparam int unsigned FwRxAddressHiBytesWidth = 16;
  localparam int unsigned FwRxAddressHiUsedLsb = 31;
  localparam int unsigned FwRxAddressHiUsedWidth = 1;

  // RX_VLAN, wo, 128 of them
  localparam logic [15:0] FwRxVlanOffset = 16'h800;
  localparam logic [15:0] FwRxVlanStride = 16'h004;

  // TX_EMPTY, rw, 64 of them
  localparam logic [15:0] FwTxEmptyOffset = 16'h1000;
  localparam logic [15:0] FwTxEmptyStride = 16'h020;
  localparam logic [31:0] FwTxEmptyReset = 32'h00000000;
  localparam int unsigned FwTxEmptyHoldoffLsb = 0;
  localparam int unsigned FwTxEmptyHoldoffWidth = 23;
  localparam int unsigned FwTxEmptyEnableLsb = 31;
  localparam int unsigned FwTxEmptyEnableWidth = 1;

  // TX_MAX_AGE, rw, 64 of them
  localparam logic [15:0] FwTxMaxAgeOffset = 16'h1004;
  localparam logic [15:0] FwTxMaxAgeStride = 16'h020;
  localparam logic [31:0] FwTxMaxAgeReset = 32'h00000000;
  localparam int unsigned FwTxMaxAgeCyclesLsb = 0;
  localparam int unsigned FwTxMaxAgeCyclesWidth = 23;

  // TX_MARKER, rw, 64 of them
  localparam logic [15:0] FwTxMarkerOffset = 16'h1008;
  localparam logic [15:0] FwTxMarkerStride = 16'h020;
  localparam logic [31:0] FwTxMarkerReset = 32'h00000000;
  localparam int unsigned FwTxMarkerEnableLsb = 0;
  localparam int unsigned FwTxMarkerEnableWidth = 1;

  // TX_IRQ_EMPTY, ro, 64 of them
  localparam logic [15:0] FwTxIrqEmptyOffset = 16'h1010;
  localparam logic [15:0] FwTxIrqEmptyStride = 16'h020;
  localparam logic [31:0] FwTxIrqEmptyReset = 32'h00000000;

  // TX_IRQ_MAX_AGE, ro, 64 of them
  localparam logic [15:0] FwTxIrqMaxAgeOffset = 16'h1014;
  localparam logic [15:0] FwTxIrqMaxAgeStride = 16'h020;
  localparam logic [31:0] FwTxIrqMaxAgeReset = 32'h00000000;

  // TX_IRQ_MARKER, ro, 64 of them
  localparam logic [15:0] FwTxIrqMarkerOffset = 16'h1018;
  localparam logic [15:0] FwTxIrqMarkerStride = 16'h020;
  localparam logic [31:0] FwTxIrqMarkerReset = 32'h00000000;

  // TX_OVERTAKEN, ro, 64 of them
  localparam logic [15:0] FwTxOvertakenOffset = 16'h101c;
  localparam logic [15:0] FwTxOvertakenStride = 16'h020;
  localparam logic [31:0] FwTxOvertakenReset = 32'h00000000;

  // TX_EMPTY_CAPS, ro
  localparam logic [15:0] FwTxEmptyCapsOffset = 16'h1800;
  localparam logic [31:0] FwTxEmptyCapsReset = 32'h0000000e;
  localparam int unsigned FwTxEmptyCapsMarkerFlagLsb = 0;
  localparam int unsigned FwTxEmptyCapsMarkerFlagWidth = 4;

  // COAL_PACKETS, rw, 128 of them
  localparam logic [15:0] FwCoalPacketsOffset = 16'h2000;
  localparam logic [15:0] FwCoalPacketsStride = 16'h008;
  localparam logic [31:0] FwCoalPacketsReset = 32'h00000000;
  localparam int unsigned FwCoalPacketsPacketsLsb = 0;
  localparam int unsigned FwCoalPacketsPacketsWidth = 16;

  // COAL_TIME, rw, 128 of them
  localparam logic [15:0] FwCoalTimeOffset = 16'h2004;
  localparam logic [15:0] FwCoalTimeStride = 16'h008;
  localparam logic [31:0] FwCoalTimeReset = 32'h00000000;
  localparam int unsigned FwCoalTimeCyclesLsb = 0;
  localparam int unsigned FwCoalTimeCyclesWidth = 23;

  // COAL_RX_PACKETS, rw
  localparam logic [15:0] FwCoalRxPacketsOffset = 16'h2400;
  localparam logic [31:0] FwCoalRxPacketsReset = 32'h00000000;
  localparam int unsigned FwCoalRxPacketsPacketsLsb = 0;
  localparam int unsigned FwCoalRxPacketsPacketsWidth = 16;

  // COAL_RX_TIME, rw
  localparam logic [15:0] FwCoalRxTimeOffset = 16'h2404;
  localparam logic [31:0] FwCoalRxTimeReset = 32'h00000000;
  localparam int unsigned FwCoalRxTimeCyclesLsb = 0;
  localparam int unsigned FwCoalRxTimeCyclesWidth = 23;

  // COAL_TX_PACKETS, rw
  localparam logic [15:0] FwCoalTxPacketsOffset = 16'h2408;
  localparam logic [31:0] FwCoalTxPacketsReset = 32'h00000000;
  localparam int unsigned FwCoalTxPacketsPacketsLsb = 0;
  localparam int unsigned FwCoalTxPacketsPacketsWidth = 16;

  // COAL_TX_TIME, rw
  localparam logic [15:0] FwCoalTxTimeOffset = 16'h240c;
  localparam logic [31:0] FwCoalTxTimeReset = 32'h00000000;
  localparam int unsigned FwCoalTxTimeCyclesLsb = 0;
  localparam int unsigned FwCoalTxTimeCyclesWidth = 23;

endpackage
/* verilator lint_on UNUSEDPARAM */

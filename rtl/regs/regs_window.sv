// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Our own register window (found through the DVSEC): identification, settings and counters, as
// rtl/regs/ferronic_window.rdl describes them.
//
// Counters are kept in RAM. A write to SNAPSHOT copies the time base, one queue's counters and the
// card's counters to where they are read, so that the halves of a 64-bit value belong together and
// reads have no side effect. The write is answered when the copy is done (about 50 cycles); other
// accesses take three. Frame events are counted two cycles each.
//
// Settings return to their defaults with the function's reset. Counters begin at zero when the card
// is configured and are never cleared: software takes differences.
`include "ferronic_assert.svh"
module regs_window
  import ferronic_pkg::*;
  import ferronic_window_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned NumQueues = 8,
  parameter int unsigned CardEvents = 12,
  localparam int unsigned QW = $clog2(NumQueues)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  fn_rst_i,
  input  logic [63:0]           time_i,

  input  reg_req_t              req_i,
  output reg_rsp_t              rsp_o,
  output logic [6:0]            pairs_in_use_o,

  input  frame_event_t          rx_event_i,
  input  frame_event_t          tx_event_i,
  input  logic                  irq_event_i,
  input  qid_t                  irq_q_i,
  // One-cycle pulses in the order of the window's card counters from RX_SHORT on.
  input  logic [CardEvents-1:0] card_event_i,
  output logic                  idle_o
);
  localparam int unsigned StampW = 48, PacketW = 48, ByteW = 48;
  typedef struct packed {
    logic [StampW-1:0]  stamp;
    logic [ByteW-1:0]   bytes;
    logic [PacketW-1:0] packets;
    logic [31:0]        drops;
    logic [31:0]        irqs;
  } row_t;
  localparam int unsigned EventW = $bits(frame_event_t) - 1;

  // ---------------------------------------------------------------- queue counters
  logic [2:0] ev_valid, ev_pop, ev_ready;
  logic [2:0][EventW-1:0] ev;
  wire [2:0][EventW-1:0] ev_in = '{{irq_q_i, 17'd0}, tx_event_i[EventW-1:0],
                                   rx_event_i[EventW-1:0]};
  wire [2:0] ev_in_valid = {irq_event_i, tx_event_i.valid, rx_event_i.valid};
  for (genvar e = 0; e < 3; e++) begin : g_events
    logic [4:0] level;
    prim_fifo #(.Width(EventW), .Depth(16)) u_fifo (
      .clk_i, .rst_ni, .clr_i(1'b0),
      .wr_valid_i(ev_in_valid[e]), .wr_ready_o(ev_ready[e]), .wr_data_i(ev_in[e]),
      .rd_valid_o(ev_valid[e]), .rd_ready_i(ev_pop[e]), .rd_data_o(ev[e]), .level_o(level));
    `FERRONIC_ASSERT(EventFits, !ev_in_valid[e] || ev_ready[e], clk_i, rst_ni)
    logic unused_level;
    assign unused_level = ^level;
  end

  typedef enum logic [2:0] {StIdle, StAdd, StSnapRead, StSnapQueue, StSnapCard, StSnapDone} st_e;
  st_e        st_q;
  logic [1:0] src_q;
  row_t       row, row_new;
  logic       row_re;
  qid_t       row_q, row_q_q, snap_q_q;
  logic       drop_q;
  logic [15:0] bytes_q;
  logic [3:0] step_q;

  wire snap_start;
  // Receive and transmit take turns; interrupts are rare.
  wire [1:0] src = (ev_valid[0] && (src_q != 2'd0 || !ev_valid[1])) ? 2'd0 :
                   ev_valid[1] ? 2'd1 : 2'd2;
  wire ev_start = (st_q == StIdle) && |ev_valid && !snap_start;
  always_comb begin
    ev_pop = '0;
    if (ev_start) ev_pop[src] = 1'b1;
  end
  wire [EventW-1:0] ev_sel = ev[src];
  assign row_q  = (snap_start && st_q == StIdle) ? qid_t'(req_i.wdata[QidW-1:0])
                                                  : ev_sel[EventW-1 -: QidW];
  assign row_re = (st_q == StIdle);

  // Three RAMs, so that an event writes only what it changes.
  localparam int unsigned FrameW = StampW + ByteW + PacketW;
  wire [QW-1:0] wq     = row_q_q[QW-1:0];
  wire          add    = (st_q == StAdd);
  wire          is_irq = (src_q == 2'd2);
  assign row_new = '{stamp: time_i[StampW-1:0], bytes: row.bytes + ByteW'(bytes_q),
                     packets: row.packets + PacketW'(1), drops: row.drops + 32'd1,
                     irqs: row.irqs + 32'd1};
  prim_ram_1r1w #(.Width(FrameW), .Depth(NumQueues), .ZeroInit(1'b1)) u_frames (
    .clk_i, .we_i(add && !is_irq && !drop_q), .waddr_i(wq), .wdata_i(row_new[64 +: FrameW]),
    .re_i(row_re), .raddr_i(row_q[QW-1:0]), .rdata_o(row[64 +: FrameW]));
  prim_ram_1r1w #(.Width(32), .Depth(NumQueues), .ZeroInit(1'b1)) u_drops (
    .clk_i, .we_i(add && !is_irq && drop_q), .waddr_i(wq), .wdata_i(row_new.drops),
    .re_i(row_re), .raddr_i(row_q[QW-1:0]), .rdata_o(row.drops));
  prim_ram_1r1w #(.Width(32), .Depth(NumQueues), .ZeroInit(1'b1)) u_irqs (
    .clk_i, .we_i(add && is_irq), .waddr_i(wq), .wdata_i(row_new.irqs),
    .re_i(row_re), .raddr_i(row_q[QW-1:0]), .rdata_o(row.irqs));

  // ---------------------------------------------------------------- card counters
  // Nothing is added during reset: what waits is unknown then.
  // Each event waits in a small counter of its own until the scan adds it to the RAM.
  logic [CardEvents-1:0][4:0] wait_q;
  logic [3:0]  scan_q;
  logic [31:0] card_rd, card_snap;
  wire  [31:0] card_add = card_rd + {27'd0, (scan_q < 4'(CardEvents)) ? wait_q[scan_q] : 5'd0};
  prim_lutram #(.Width(32), .Depth(16), .ZeroInit(1'b1)) u_card (
    .clk_i, .we_i(rst_ni), .waddr_i(scan_q), .wdata_i(card_add), .raddr_i(scan_q),
    .rdata_o(card_rd));
  // The same contents, for the snapshot to read.
  prim_lutram #(.Width(32), .Depth(16), .ZeroInit(1'b1)) u_card_snap (
    .clk_i, .we_i(rst_ni), .waddr_i(scan_q), .wdata_i(card_add), .raddr_i(step_q),
    .rdata_o(card_snap));
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      scan_q <= '0;
      wait_q <= '0;
    end else begin
      scan_q <= scan_q + 4'd1;
      for (int c = 0; c < int'(CardEvents); c++) begin
        wait_q[c] <= ((scan_q == 4'(c)) ? 5'd0 : wait_q[c]) + 5'(card_event_i[c]);
      end
    end
  end

  // ---------------------------------------------------------------- registers
  logic        ack_q, got_q, void_q;
  logic [31:0] rdata_q, snap_rd;
  logic [6:0]  pairs_q;
  wire  [14:0] offset = req_i.addr[14:0];
  wire         wr     = req_i.valid && req_i.write && !ack_q;
  assign snap_start   = wr && ({1'b0, offset} == FwSnapshotOffset) && (|req_i.be);
  wire snap_done      = (st_q == StSnapDone);
  wire snap_is_read   = (offset[14:8] == '0) &&
                        (offset[7:6] != 2'b00 || offset[7:3] == FwTimeLoOffset[7:3]);

  logic        snap_we;
  logic [5:0]  snap_waddr;
  logic [31:0] snap_wdata;
  prim_ram_1r1w #(.Width(32), .Depth(64), .ZeroInit(1'b1)) u_snap (
    .clk_i, .we_i(snap_we), .waddr_i(snap_waddr), .wdata_i(snap_wdata),
    .re_i(1'b1), .raddr_i(offset[7:2]), .rdata_o(snap_rd));

  logic [63:0] time_q;
  logic [9:0][31:0] words;
  assign words = '{row.irqs, row.drops,
                   32'(row.stamp >> 32), row.stamp[31:0],
                   32'(row.bytes >> 32), row.bytes[31:0],
                   32'(row.packets >> 32), row.packets[31:0],
                   time_q[63:32], time_q[31:0]};
  always_comb begin
    snap_we    = 1'b0;
    snap_waddr = '0;
    snap_wdata = (void_q && step_q > 4'd1) ? '0 : words[step_q];
    if (st_q == StSnapQueue) begin
      snap_we    = 1'b1;
      snap_waddr = (step_q < 4'd2) ? FwTimeLoOffset[7:2] + {2'd0, step_q}
                                   : FwSnapPacketsLoOffset[7:2] + {2'd0, step_q - 4'd2};
    end else if (st_q == StSnapCard) begin
      snap_we    = 1'b1;
      snap_waddr = FwRxShortOffset[7:2] + {2'd0, step_q};
      snap_wdata = card_snap;
    end
  end

  logic [31:0] rdata;
  always_comb begin
    unique case ({1'b0, offset})
      FwUuid0Offset:      rdata = FwUuid0Reset;
      FwUuid1Offset:      rdata = FwUuid1Reset;
      FwUuid2Offset:      rdata = FwUuid2Reset;
      FwUuid3Offset:      rdata = FwUuid3Reset;
      FwVersionOffset:    rdata = FwVersionReset;
      FwFeaturesOffset:   rdata = FwFeaturesReset;
      FwCapsOffset:       rdata = {16'd0, 8'(DataW / 8), 8'(NumQueues / 2)};
      FwClockHzOffset:    rdata = FwClockHzReset;
      FwPairsInUseOffset: rdata = {25'd0, pairs_q};
      FwSnapQueueOffset:  rdata = {25'd0, snap_q_q};
      default:            rdata = snap_is_read ? snap_rd : '0;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      st_q     <= StIdle;
      ack_q    <= 1'b0;
      got_q    <= 1'b0;
      pairs_q  <= 7'd1;
      snap_q_q <= '0;
      void_q   <= 1'b0;
    end else begin
      // Reads wait one cycle for the snapshot RAM; a snapshot is answered when it is done.
      got_q <= req_i.valid && !ack_q && !got_q;
      ack_q <= snap_start ? snap_done : (got_q && !ack_q && req_i.valid);
      if (wr && {1'b0, offset} == FwPairsInUseOffset && req_i.be[0] && got_q) begin
        if (req_i.wdata[31:7] == '0 && req_i.wdata[6:0] != '0 &&
            req_i.wdata[6:0] <= 7'(NumQueues / 2)) begin
          pairs_q <= req_i.wdata[6:0];
        end
      end
      if (fn_rst_i) pairs_q <= 7'd1;
      unique case (st_q)
        StIdle: begin
          if (snap_start && !ack_q) begin
            st_q     <= StSnapRead;
            snap_q_q <= qid_t'(req_i.wdata[QidW-1:0]);
            // A queue that does not exist has counted nothing.
            void_q   <= ({1'b0, req_i.wdata[QidW-1:0]} >= (QidW + 1)'(NumQueues));
          end else if (ev_start) st_q <= StAdd;
        end
        StAdd: st_q <= StIdle;
        StSnapRead: st_q <= StSnapQueue;
        StSnapQueue: if (step_q == 4'd9) st_q <= StSnapCard;
        StSnapCard: if (step_q == 4'd15) st_q <= StSnapDone;
        StSnapDone: st_q <= StIdle;
        default: st_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    rdata_q <= rdata;
    if (st_q == StIdle) src_q <= src;
    row_q_q <= row_q;
    drop_q  <= ev_sel[16];
    bytes_q <= ev_sel[15:0];
    if (st_q == StIdle) time_q <= time_i;
    unique case (st_q)
      StSnapQueue: step_q <= (step_q == 4'd9) ? 4'd0 : step_q + 4'd1;
      StSnapCard: step_q <= step_q + 4'd1;
      default: step_q <= '0;
    endcase
  end

  assign rsp_o          = '{ack: ack_q, rdata: rdata_q};
  assign pairs_in_use_o = pairs_q;
  assign idle_o         = (st_q == StIdle) && (ev_valid == '0) && (wait_q == '0);

  logic unused;
  assign unused = ^{req_i.addr, row_q, row_q_q, rx_event_i, tx_event_i};
endmodule

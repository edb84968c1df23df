// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Settings and counters of large receive offload, in front of the rest of our window.
//
// What is read comes from one RAM: counters, settings as they were written, and their defaults,
// which are read instead until a setting is written again after a reset. A counter that changes
// takes two cycles; 16 events wait in a FIFO, of which each may be of all kinds.
//
// A write that changes what is merged is answered when nothing is held any more: `lro_flush_o`
// rises, `lro_flushed_i` is looked at from the third cycle on, the setting changes in the cycle in
// which `lro_flush_o` falls. PAIRS_IN_USE, RSS_APPLY and RX_FOLLOW, which others have, are handed
// on in between. All other accesses take four cycles, or are passed on at once. A function reset
// restores the settings and ends a write that waits, without effect.
//
// Counters begin at zero when the card is configured and are never cleared.
`include "ferronic_assert.svh"
module regs_lro
  import ferronic_pkg::*;
  import ferronic_window_pkg::*;
#(
  parameter int unsigned Contexts = 16,
  parameter int unsigned MaxBuffers = 64,
  parameter bit          Relaxed = 1'b1    // that profile can be set
) (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       fn_rst_i,

  input  reg_req_t   req_i,
  output reg_rsp_t   rsp_o,
  output reg_req_t   window_req_o,  // the rest of the window
  input  reg_rsp_t   window_rsp_i,

  output lro_cfg_t   lro_cfg_o,
  output logic       lro_flush_o,
  input  logic       lro_flushed_i,
  input  lro_event_t lro_event_i,
  output logic       idle_o
);
  if (Contexts < 1 || Contexts > 65535 || MaxBuffers < 1 || MaxBuffers > 255) begin : g_bad_caps
    $error("%m: Contexts (%0d) or MaxBuffers (%0d) do not fit LRO_CAPS", Contexts, MaxBuffers);
  end
  if (FwLroClosedStoppedOffset != 16'h140 + 16'd4 * 16'(LroStopped) ||
      FwLroClosedUntrustedOffset != 16'h140 + 16'd4 * 16'(LroUntrusted)) begin : g_bad_causes
    $error("%m: the counters are not in the order of lro_cause_e");
  end

  // ---------------------------------------------------------------- accesses
  typedef enum logic [1:0] {
    StIdle,
    StBus,  // a word was read for the bus
    StAdd   // a counter was read
  } st_e;
  st_e         st_q;
  logic        ack_q, flush_q, flushed_q, mine_q;
  logic [1:0]  wait_q;
  logic [5:1]  written_q;  // by word of the settings
  lro_cfg_t    cfg_q;
  logic [31:0] rdata_q;

  wire [14:0] offset  = req_i.addr[14:0];
  wire        mine    = (offset[14:8] == 7'd1);
  wire [2:0]  word    = offset[4:2];
  wire        setting = mine && (offset[7:5] == '0);
  wire        write   = req_i.valid && req_i.write && !ack_q;
  wire        pairs   = write && req_i.be[0] && ((offset[14:2] == FwPairsInUseOffset[14:2]) ||
                        (offset[14:2] == FwRssApplyOffset[14:2]) ||
                        (offset[14:2] == FwRxFollowOffset[14:2]));

  // Values that are taken.
  wire [31:0] value  = req_i.wdata;
  wire        cycles = (value[31:23] == '0) && (value[22:0] != '0);
  logic       sound;
  always_comb begin
    unique case (word)
      FwLroProfileOffset[4:2]:  sound = (value[31:2] == '0) &&
                                        !(value[1] && (value[0] || !Relaxed));
      FwLroGapOffset[4:2], FwLroHoldOffset[4:2]: sound = cycles;
      FwLroMaxBytesOffset[4:2]: sound = (value[31:16] == '0) &&
                                        ((|value[15:10]) || (value[9] && (|value[8:6])));
      FwLroLowWaterOffset[4:2]: sound = (value[31:7] == '0) && !(value[6] && (|value[5:0]));
      default:                                   sound = 1'b0;
    endcase
  end
  wire take    = write && (&req_i.be) && setting && sound;
  wire stopper = take || pairs;
  // Whether a value is taken is seen from the second cycle on, and stays so until the answer.
  logic seen_q, take_q;
  always_ff @(posedge clk_i) begin
    seen_q <= req_i.valid && !ack_q && rst_ni;
    take_q <= take;
  end

  wire idle    = (st_q == StIdle);
  wire bus_now = idle && seen_q && mine && !ack_q && (!take_q || flushed_q);
  // A reset before the value is there.
  wire undo    = fn_rst_i && flush_q && stopper && (mine || !flushed_q);
  // The write that all this was for is done.
  wire done    = mine ? (st_q == StBus) : window_rsp_i.ack;

  // ---------------------------------------------------------------- events
  // What of the oldest is counted already is in `counted_q`.
  lro_event_t event_rd;
  logic       event_any, event_valid, event_ready, event_pop;
  logic [4:0] event_level;
  logic [1:0] counted_q;
  assign event_any = lro_event_i.closed || lro_event_i.opened || lro_event_i.merged;
  prim_fifo #(.Width($bits(lro_event_t)), .Depth(16)) u_events (
    .clk_i, .rst_ni, .clr_i(1'b0),
    .wr_valid_i(event_any), .wr_ready_o(event_ready), .wr_data_i(lro_event_i),
    .rd_valid_o(event_valid), .rd_ready_i(event_pop), .rd_data_o(event_rd),
    .level_o(event_level));
  `FERRONIC_ASSERT(EventFits, !event_any || event_ready, clk_i, rst_ni)

  wire closed = event_rd.closed && !counted_q[0];
  wire opened = event_rd.opened && !counted_q[1];
  wire last   = closed ? !(event_rd.opened || event_rd.merged) : !(opened && event_rd.merged);
  wire count_now   = idle && !bus_now && event_valid;
  assign event_pop = count_now && last;

  // Words from the window's 0x100 on: the causes are 16 and more.
  logic [4:0] cause;
  logic [5:0] count, count_q;
  assign cause = event_rd.cause;
  always_comb begin
    if (closed)      count = {cause[4], !cause[4], cause[3:0]};
    else if (opened) count = FwLroOpenedOffset[7:2];
    else             count = FwLroMergedOffset[7:2];
  end

  // ---------------------------------------------------------------- state
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      st_q      <= StIdle;
      ack_q     <= 1'b0;
      flush_q   <= 1'b0;
      flushed_q <= 1'b0;
      wait_q    <= '0;
      counted_q <= '0;
    end else begin
      ack_q <= (st_q == StBus) || undo;
      unique case (st_q)
        StIdle: begin
          if (bus_now) st_q <= undo ? StIdle : StBus;
          else if (event_valid) st_q <= StAdd;
        end
        default: st_q <= StIdle;
      endcase

      if (flush_q ? (done || undo) : !stopper) begin
        flush_q   <= 1'b0;
        flushed_q <= 1'b0;
        wait_q    <= '0;
      end else begin
        flush_q <= 1'b1;
        if (flush_q && !wait_q[1]) wait_q <= wait_q + 2'd1;
        if (wait_q[1] && lro_flushed_i) flushed_q <= 1'b1;
      end

      if (event_pop) counted_q <= '0;
      else if (count_now) counted_q <= {!closed, 1'b1};
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      written_q <= '0;
      cfg_q     <= '{
        strict:    FwLroProfileReset[0],
        relaxed:   FwLroProfileReset[1],
        gap:       FwLroGapReset[23:0],
        hold:      FwLroHoldReset[23:0],
        max_bytes: FwLroMaxBytesReset[15:0],
        low_water: FwLroLowWaterReset[6:0]
      };
    end else if (st_q == StBus && take_q) begin
      for (int w = 1; w <= 5; w++) if (word == 3'(w)) written_q[w] <= 1'b1;
      if (word == FwLroProfileOffset[4:2])  {cfg_q.relaxed, cfg_q.strict} <= value[1:0];
      if (word == FwLroGapOffset[4:2])      cfg_q.gap       <= value[23:0];
      if (word == FwLroHoldOffset[4:2])     cfg_q.hold      <= value[23:0];
      if (word == FwLroMaxBytesOffset[4:2]) cfg_q.max_bytes <= value[15:0];
      if (word == FwLroLowWaterOffset[4:2]) cfg_q.low_water <= value[6:0];
    end
  end

  always_ff @(posedge clk_i) if (idle) count_q <= count;

  // ---------------------------------------------------------------- the RAM
  // Upper half: the window from 0x100 on. Lower half: the settings as they are by default.
  localparam logic [5:0][31:0] Defaults = {
    FwLroLowWaterReset, FwLroMaxBytesReset, FwLroHoldReset, FwLroGapReset, FwLroProfileReset,
    {8'd0, 8'(MaxBuffers), 16'(Contexts)}
  };
  logic [7:0] written;
  assign written = {2'b00, written_q, 1'b0};

  logic        we;
  logic [6:0]  raddr, waddr;
  logic [31:0] ram_rd, sum, wdata;
  assign raddr = bus_now ? {!setting || written[word], offset[7:2]} : {1'b1, count};
  assign we    = (st_q == StAdd) || (st_q == StBus && take_q);
  assign waddr = {1'b1, (st_q == StAdd) ? count_q : offset[7:2]};
  // A setting was read before it is written: its upper bits are 0 in the sum.
  assign sum   = ram_rd + 32'(st_q == StAdd);
  assign wdata = {sum[31:23], (st_q == StAdd) ? sum[22:0] : value[22:0]};
  prim_ram_1r1w #(
    .Width(32), .Depth(128), .InBlock(1'b1), .ZeroInit(1'b1), .InitWords(6), .Init(Defaults)
  ) u_ram (
    .clk_i, .we_i(rst_ni && we), .waddr_i(waddr), .wdata_i(wdata), .re_i(idle), .raddr_i(raddr),
    .rdata_o(ram_rd));

  // ---------------------------------------------------------------- answers
  always_ff @(posedge clk_i) begin
    rdata_q <= ram_rd;
    mine_q  <= mine;
  end
  always_comb begin
    window_req_o       = req_i;
    window_req_o.valid = req_i.valid && !mine && (!pairs || flushed_q) && !ack_q;
  end
  assign rsp_o       = '{ack:   ack_q || window_rsp_i.ack,
                         rdata: mine_q ? rdata_q : window_rsp_i.rdata};
  assign lro_cfg_o   = cfg_q;
  assign lro_flush_o = flush_q;
  assign idle_o      = idle && !flush_q && !event_valid;

  logic unused;
  assign unused = ^{req_i.addr, offset[1:0], event_level};
endmodule

// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Our own register window (found through the DVSEC): identification, settings and counters, as
// rtl/regs/ferronic_window.rdl describes them.
//
// One RAM holds everything that can be read, where it is read, and behind it eight words a queue:
// the counters themselves, in the order of the window's registers. One adder serves them all. A
// frame changes only the queue's short counts beside it, and its stamp; 32 frames or 128 KiB are
// carried over at once. A write to SNAPSHOT copies one queue's counters, short counts added, the
// time base and the card's counters to where they are read, so that the halves of a 64-bit value
// belong together and reads have no side effect.
//
// A snapshot is answered when the copy is done (about 30 cycles); other accesses take three. Frame
// events take two cycles each, and wait in FIFOs.
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
  parameter int unsigned CardEvents = 13,
  parameter bit          Lro = 1'b0,  // FEATURES says so; regs_lro has the registers
  parameter bit          TxEmpty = 1'b0,  // likewise; vq_empty has them
  parameter bit          Steering = 1'b0, // likewise; regs_rx has them
  parameter bit          Filters = 1'b0,
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
  if (CardEvents > 14) begin : g_bad_events
    $error("%m: CardEvents (%0d) must be at most 14", CardEvents);
  end

  // ---------------------------------------------------------------- events
  // A dropped frame waits as one of a length that no frame has.
  typedef logic [QW-1:0] queue_t;
  typedef struct packed {
    queue_t      q;
    logic [13:0] bytes;
  } event_t;
  event_t [1:0] ev_in, ev;
  logic   [1:0] ev_in_valid, ev_valid, ev_pop, ev_ready;
  assign ev_in[0] = '{q: rx_event_i.q[QW-1:0],
                      bytes: rx_event_i.bytes[13:0] | {{2{rx_event_i.drop}}, 12'd0}};
  assign ev_in[1] = '{q: tx_event_i.q[QW-1:0],
                      bytes: tx_event_i.bytes[13:0] | {{2{tx_event_i.drop}}, 12'd0}};
  assign ev_in_valid = {tx_event_i.valid, rx_event_i.valid};
  for (genvar e = 0; e < 2; e++) begin : g_events
    logic [4:0] level;
    prim_fifo #(.Width($bits(event_t)), .Depth(16)) u_fifo (
      .clk_i, .rst_ni, .clr_i(1'b0),
      .wr_valid_i(ev_in_valid[e]), .wr_ready_o(ev_ready[e]), .wr_data_i(ev_in[e]),
      .rd_valid_o(ev_valid[e]), .rd_ready_i(ev_pop[e]), .rd_data_o(ev[e]), .level_o(level));
    `FERRONIC_ASSERT(EventFits, !ev_in_valid[e] || ev_ready[e], clk_i, rst_ni)
    logic unused_level;
    assign unused_level = ^level;
  end

  logic       irq_valid, irq_pop, irq_ready;
  queue_t     irq_q;
  logic [3:0] irq_level;
  prim_fifo #(.Width(QW), .Depth(8)) u_irqs (
    .clk_i, .rst_ni, .clr_i(1'b0),
    .wr_valid_i(irq_event_i), .wr_ready_o(irq_ready), .wr_data_i(irq_q_i[QW-1:0]),
    .rd_valid_o(irq_valid), .rd_ready_i(irq_pop), .rd_data_o(irq_q), .level_o(irq_level));
  `FERRONIC_ASSERT(IrqFits, !irq_event_i || irq_ready, clk_i, rst_ni)

  // ---------------------------------------------------------------- what is done next
  typedef enum logic [2:0] {
    StIdle,
    StBus,    // a word was read for the bus
    StAdd,    // a word of a queue was read
    StFrame,  // short counts of a queue were read
    StSnap,   // words of the queue, then the time base
    StCard    // all of the card's counters pass by
  } st_e;
  // What is written, which is known in the cycle before.
  typedef enum logic [1:0] {WrSum, WrTimeLo, WrTimeHi, WrCard} write_e;
  // Words of a queue, as from SNAP_PACKETS_LO on.
  localparam logic [2:0] WdPackets = 3'd0, WdBytes = 3'd2, WdStamp = 3'd4, WdDrops = 3'd6,
                         WdIrqs = 3'd7;
  // Of the frames since the last carry.
  typedef struct packed {
    logic [4:0]  packets;
    logic [16:0] bytes;
  } short_t;

  st_e         st_q;
  write_e      write_q;
  queue_t      q_q, pick_q;
  logic [2:0]  word_q, pick_word;
  logic        last_tx_q;              // receive and transmit take turns
  logic        ack_q, void_q;
  logic        packets_over_q, bytes_over_q;  // short counts to be carried over
  logic        stamp_hi_q;             // the upper half of a stamp is to be written
  logic        inc_q, carry_q, add_packets_q, add_bytes_q, sel_packets_q, sel_bytes_q;
  logic [13:0] len_q;
  logic        carry;                  // out of the sum
  logic [3:0]  step_q, scan_q;
  logic [6:0]  pairs_q, snap_q_q;
  logic [31:0] rdata_q;
  logic [63:0] time_q;
  short_t      short_rd, short_new;
  logic        packets_over, bytes_over;

  wire [14:0] offset  = req_i.addr[14:0];
  wire        at_low  = (offset[14:8] == '0);
  wire        bus     = req_i.valid && !ack_q;
  wire        is_snap = bus && req_i.write && at_low && (|req_i.be) &&
                        (offset[7:2] == FwSnapshotOffset[7:2]);
  wire        is_pairs = at_low && (offset[7:2] == FwPairsInUseOffset[7:2]);
  wire        idle    = (st_q == StIdle);
  wire        carries = carry_q || packets_over_q || bytes_over_q;
  wire        src     = ev_valid[1] && !(ev_valid[0] && last_tx_q);
  wire        dropped = &ev[src].bytes[13:12];
  // A snapshot waits for the events before it, so that they find their FIFOs empty afterwards.
  wire        bus_now = bus && !(is_snap && (irq_valid || (|ev_valid)));
  wire        free    = idle && !carries && !bus_now;
  wire        ev_now  = free && !irq_valid && (|ev_valid);
  assign irq_pop = free && irq_valid;
  assign ev_pop  = {ev_now && src, ev_now && !src};

  always_comb begin
    if (carries)             pick_q = q_q;
    else if (bus_now)        pick_q = req_i.wdata[QW-1:0];
    else if (irq_valid)      pick_q = irq_q;
    else                     pick_q = ev[src].q;
    if (carry_q)             pick_word = {word_q[2:1], 1'b1};
    else if (packets_over_q) pick_word = WdPackets;
    else if (bytes_over_q)   pick_word = WdBytes;
    else if (irq_valid)      pick_word = WdIrqs;
    else                     pick_word = dropped ? WdDrops : WdStamp;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      st_q           <= StIdle;
      ack_q          <= 1'b0;
      pairs_q        <= 7'd1;
      snap_q_q       <= '0;
      carry_q        <= 1'b0;
      packets_over_q <= 1'b0;
      bytes_over_q   <= 1'b0;
      stamp_hi_q     <= 1'b0;
    end else begin
      ack_q      <= 1'b0;
      stamp_hi_q <= (st_q == StFrame);
      unique case (st_q)
        StIdle: begin
          if (carries)        st_q <= StAdd;
          else if (bus_now)   st_q <= is_snap ? StSnap : StBus;
          else if (irq_valid) st_q <= StAdd;
          else if (|ev_valid) st_q <= dropped ? StAdd : StFrame;
          if (!carries && bus_now && is_snap) snap_q_q <= req_i.wdata[QidW-1:0];
          // One at a time, the carry of the last first.
          if (!carry_q) packets_over_q <= 1'b0;
          if (!carry_q && !packets_over_q) bytes_over_q <= 1'b0;
        end
        StBus: begin
          st_q  <= StIdle;
          ack_q <= 1'b1;
          if (req_i.write && is_pairs && req_i.be[0] && req_i.wdata[31:7] == '0 &&
              req_i.wdata[6:0] != '0 && req_i.wdata[6:0] <= 7'(NumQueues / 2)) begin
            pairs_q <= req_i.wdata[6:0];
          end
        end
        StAdd: begin
          st_q    <= StIdle;
          carry_q <= carry && !inc_q;
        end
        StFrame: begin
          st_q           <= StIdle;
          packets_over_q <= packets_over;
          bytes_over_q   <= bytes_over;
        end
        StSnap: begin
          carry_q <= carry;
          if (step_q == 4'd10) st_q <= StCard;
        end
        StCard: begin
          if (step_q == 4'd15) begin
            st_q  <= StIdle;
            ack_q <= 1'b1;
          end
        end
        default: st_q <= StIdle;
      endcase
      if (fn_rst_i) pairs_q <= 7'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (idle) begin
      q_q           <= pick_q;
      time_q        <= time_i;
      len_q         <= ev[src].bytes;
      // A queue that does not exist has counted nothing.
      void_q        <= ({1'b0, req_i.wdata[QidW-1:0]} >= (QidW + 1)'(NumQueues));
      inc_q         <= !carries;
      add_packets_q <= packets_over_q && !carry_q;
      add_bytes_q   <= bytes_over_q && !packets_over_q && !carry_q;
    end
    if (ev_now) last_tx_q <= src;
    if (idle) word_q <= pick_word;
    else if (st_q == StSnap) word_q <= step_q[2:0];
    if (st_q == StSnap || st_q == StCard) step_q <= (step_q == 4'd10 && st_q == StSnap) ? '0 :
                                                     step_q + 4'd1;
    else step_q <= '0;
    if (st_q == StFrame || (st_q == StSnap && step_q == 4'd9)) write_q <= WrTimeHi;
    else if ((st_q == StSnap && step_q == 4'd10) || st_q == StCard) write_q <= WrCard;
    else if ((st_q == StSnap && step_q == 4'd8) || (ev_now && !dropped)) write_q <= WrTimeLo;
    else write_q <= WrSum;
    sel_packets_q <= (st_q == StSnap) && (step_q == 4'd0) && !void_q;
    sel_bytes_q   <= (st_q == StSnap) && (step_q == 4'd2) && !void_q;
  end

  // ---------------------------------------------------------------- short counts
  prim_ram_1r1w #(.Width($bits(short_t)), .Depth(NumQueues), .ZeroInit(1'b1)) u_short (
    .clk_i, .we_i(rst_ni && st_q == StFrame), .waddr_i(q_q), .wdata_i(short_new),
    .re_i(idle), .raddr_i(pick_q), .rdata_o(short_rd));
  assign {packets_over, short_new.packets} = {1'b0, short_rd.packets} + 6'd1;
  assign {bytes_over, short_new.bytes}     = {1'b0, short_rd.bytes} + 18'(len_q);

  // ---------------------------------------------------------------- card counters
  // Each event waits in a small counter of its own until the scan adds it to the RAM. Nothing is
  // added during reset: what waits is unknown then.
  // Events come from deep in other blocks.
  logic [CardEvents-1:0]      event_q;
  logic [CardEvents-1:0][3:0] wait_q;
  logic [15:0][3:0]           waits;
  logic [15:0]                pulses;
  logic [31:0]                card_rd, card_new;
  assign waits    = 64'(wait_q);
  assign pulses   = 16'(event_q);
  assign card_new = card_rd + 32'(waits[scan_q]) + 32'(pulses[scan_q]);
  prim_lutram #(.Width(32), .Depth(16), .ZeroInit(1'b1)) u_card (
    .clk_i, .we_i(rst_ni), .waddr_i(scan_q), .wdata_i(card_new), .raddr_i(scan_q),
    .rdata_o(card_rd));
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      scan_q  <= '0;
      event_q <= '0;
      wait_q  <= '0;
    end else begin
      scan_q  <= scan_q + 4'd1;
      event_q <= card_event_i;
      for (int c = 0; c < int'(CardEvents); c++) begin
        if (scan_q == 4'(c)) wait_q[c] <= '0;
        else if (event_q[c]) wait_q[c] <= wait_q[c] + 4'd1;
      end
    end
  end

  // ---------------------------------------------------------------- the RAM and its adder
  // Lower half: the window from its base on, eight words a row. Upper half: a row a queue.
  localparam int unsigned RowW = (QW > 3) ? QW : 3;
  localparam int unsigned AddrW = RowW + 4;
  localparam logic [31:0] Features =
      (32'd1 << FwFeaturesQueueCountersLsb) | (32'd1 << FwFeaturesTimeBaseLsb) |
      (32'd1 << FwFeaturesPairsInUseLsb) | (32'(Lro) << FwFeaturesLroLsb) |
      (32'(TxEmpty) << FwFeaturesTxEmptyLsb) | (32'(Steering) << FwFeaturesSteeringLsb) |
      (32'(Filters) << FwFeaturesFiltersLsb);
  localparam logic [7:0][31:0] Constants = {
    FwClockHzReset, {16'd0, 8'(DataW / 8), 8'(NumQueues / 2)}, Features, FwVersionReset,
    FwUuid3Reset, FwUuid2Reset, FwUuid1Reset, FwUuid0Reset
  };
  function automatic logic [AddrW-1:0] window(logic [5:0] word);
    return AddrW'(word);
  endfunction

  // A row of the window that is never written.
  localparam logic [2:0] RowZero = 3'd3;
  localparam logic [2:0] RowTime = FwTimeLoOffset[7:5], RowQueue = FwSnapPacketsLoOffset[7:5];

  logic [AddrW-1:0] raddr, waddr;
  logic             we, unused_sum;
  logic [31:0]      ram_rd, sum, wdata;
  logic [17:0]      addend;
  wire              snap_time = (step_q > 4'd8);

  always_comb begin
    if (st_q == StSnap) raddr = void_q ? window({RowZero, step_q[2:0]})
                                       : {1'b1, RowW'(q_q), step_q[2:0]};
    else                raddr = (bus_now && !carries) ? window(offset[7:2])
                                                  : {1'b1, RowW'(pick_q), pick_word};

    addend = (sel_packets_q ? 18'(short_rd.packets) : '0) |
             (sel_bytes_q ? 18'(short_rd.bytes) : '0);
    addend[5]  |= (st_q == StAdd) && add_packets_q;
    addend[17] |= (st_q == StAdd) && add_bytes_q;

    we    = 1'b0;
    waddr = {1'b1, RowW'(q_q), word_q[2:1], word_q[0] || stamp_hi_q};
    unique case (st_q)
      StIdle: we = stamp_hi_q;
      StAdd, StFrame: we = 1'b1;
      StSnap: begin
        we    = (step_q != '0);
        waddr = window({snap_time ? RowTime : RowQueue, word_q});
      end
      StCard: begin
        we    = 1'b1;
        waddr = window({FwRxShortOffset[7:6], scan_q});
      end
      default: ;
    endcase

    unique case (write_q)
      WrTimeLo: wdata = time_q[31:0];
      WrTimeHi: wdata = time_q[63:32];
      WrCard:   wdata = card_new;
      default:  wdata = sum;
    endcase
  end
  assign {carry, sum, unused_sum} = {1'b0, ram_rd, 1'b1} +
                                    {15'd0, addend, carry_q || ((st_q == StAdd) && inc_q)};

  prim_ram_1r1w #(
    .Width(32), .Depth(1 << AddrW), .InBlock(1'b1), .ZeroInit(1'b1), .InitWords(8), .Init(Constants)
  ) u_ram (
    .clk_i, .we_i(rst_ni && we), .waddr_i(waddr), .wdata_i(wdata),
    .re_i(idle || st_q == StSnap), .raddr_i(raddr), .rdata_o(ram_rd));

  // ---------------------------------------------------------------- answers
  always_ff @(posedge clk_i) begin
    rdata_q <= ram_rd;
    if (is_pairs) rdata_q[6:0] <= pairs_q;
    if (at_low && offset[7:2] == FwSnapQueueOffset[7:2]) rdata_q[6:0] <= snap_q_q;
    if (!at_low) rdata_q <= '0;
  end

  assign rsp_o          = '{ack: ack_q, rdata: rdata_q};
  assign pairs_in_use_o = pairs_q;
  assign idle_o         = idle && !carries && !stamp_hi_q && !irq_valid && (ev_valid == '0) &&
                          (wait_q == '0) && (event_q == '0);

  logic unused;
  assign unused = ^{req_i.addr, offset[1:0], irq_q_i, irq_level, rx_event_i, tx_event_i,
                    unused_sum};
endmodule

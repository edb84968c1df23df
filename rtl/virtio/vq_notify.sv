// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Used buffer notifications: after used.idx has moved, reads the driver's wish (used_event, or
// avail.flags without EVENT_IDX) and interrupts if it asks for it.
//
// The read is issued after the write of used.idx was accepted by the link (pcie_order sees to it),
// so a driver that re-checks used.idx after changing its wish never sleeps on a used buffer
// (bug-log row 6). The wish is compared with the whole range of indexes published since the last
// decision, never with its end alone (bug-log row 1). One read per queue is in flight; what is
// published meanwhile is decided by the next one, so reads cannot pile up under load.
//
// vq_empty may ask for an interrupt of a queue (`tell`) for reasons of its own. It hears of each
// that is sent, so that it tells nobody what he knows.
`include "ferronic_assert.svh"
module vq_notify
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned NumQueues = 8,
  localparam int unsigned QW = $clog2(NumQueues)
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         fn_rst_i,
  input  vq_clear_t    clear_i,
  input  vq_cfg_t      cfg_i,
  input  logic         event_idx_i,
  input  logic         msix_enabled_i,

  input  logic         pub_valid_i,
  output logic         pub_ready_o,
  input  qid_t         pub_q_i,
  input  logic [15:0]  pub_idx_i,

  output logic         rd_valid_o,
  input  logic         rd_ready_i,
  output vq_rd_t       rd_o,
  input  dma_rd_done_t done_i,
  output logic         ram_req_o,
  output logic [8:0]   ram_addr_o,
  input  logic         ram_gnt_i,
  input  logic         ram_valid_i,
  input  logic [63:0]  ram_data_i,

  input  logic         tell_valid_i,
  output logic         tell_ready_o,
  input  qid_t         tell_q_i,
  // Pulse: an interrupt of queue irq_q_o was sent; or `tell` was answered without one, as the queue
  // has no vector.
  output logic         told_valid_o,
  output logic         told_asked_o,  // by `tell`
  output logic         told_sent_o,

  output irq_req_t     irq_o,
  input  logic         irq_ready_i,
  output qid_t         irq_q_o,
  output logic         isr_set_o,
  output logic         idle_o
);
  localparam int unsigned Slots = 8;

  typedef struct packed {
    logic [15:0] told;      // index at the last decision
    logic [15:0] pub;       // newest published
    logic        reading;
  } state_t;
  typedef enum logic [3:0] {
    StPick, StRam, StRamWait, StLoad, StPublished, StJudge, StAnswer, StIrq, StRead, StStore
  } st_e;

  st_e         st_q;
  state_t      s_q, s_rd;
  qid_t        q_q;
  logic        from_read_q, tell_q, fire_q;
  logic [15:0] idx_q, wish_q;
  vq_vector_t  vector, vector_q;
  ring_t       ring;
  logic [2:0]  tag_q, rtag_q;

  // Read as a visit of the queue begins, put back as it ends.
  logic pick;
  qid_t pick_q;
  prim_ram_1r1w #(.Width($bits(state_t)), .Depth(NumQueues), .InBlock(1'b1)) u_state (
    .clk_i, .we_i(st_q == StStore || clear_i.valid),
    .waddr_i(clear_i.valid ? clear_i.q[QW-1:0] : q_q[QW-1:0]),
    .wdata_i(clear_i.valid ? '0 : s_q), .re_i(pick), .raddr_i(pick_q[QW-1:0]), .rdata_o(s_rd));
  prim_lutram #(.Width($bits(vq_vector_t)), .Depth(NumQueues)) u_vector (
    .clk_i, .we_i(cfg_i.we_vector), .waddr_i(cfg_i.q[QW-1:0]), .wdata_i(cfg_i.vector),
    .raddr_i(q_q[QW-1:0]), .rdata_o(vector));
  prim_lutram #(.Width($bits(ring_t)), .Depth(NumQueues)) u_ring (
    .clk_i, .we_i(cfg_i.we_ring), .waddr_i(cfg_i.q[QW-1:0]), .wdata_i(cfg_i.ring),
    .raddr_i(q_q[QW-1:0]), .rdata_o(ring));

  // Reads in flight, in order: queue and the index that was published when it was issued.
  logic fl_wr, fl_ready, fl_valid, fl_pop;
  qid_t fl_q;
  logic [15:0] fl_idx;
  logic [3:0] fl_level, dn_level;
  prim_fifo #(.Width(QidW + 16), .Depth(Slots)) u_flight (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .wr_valid_i(fl_wr), .wr_ready_o(fl_ready), .wr_data_i({q_q, s_q.pub}),
    .rd_valid_o(fl_valid), .rd_ready_i(fl_pop), .rd_data_o({fl_q, fl_idx}), .level_o(fl_level));
  vq_cookie_t cookie;
  assign cookie = vq_cookie_t'(done_i.cookie);
  logic dn_ready, dn_valid, dn_addr1, dn_err;
  prim_fifo #(.Width(2), .Depth(Slots)) u_done (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .wr_valid_i(done_i.valid && cookie.client == ClEvent), .wr_ready_o(dn_ready),
    .wr_data_i({done_i.err, cookie.addr1}),
    .rd_valid_o(dn_valid), .rd_ready_i(fl_pop), .rd_data_o({dn_err, dn_addr1}),
    .level_o(dn_level));

  wire pick_done = (st_q == StPick) && dn_valid && fl_valid;
  wire pick_tell = (st_q == StPick) && !pick_done && tell_valid_i && !clear_i.valid;
  assign tell_ready_o = pick_tell;
  assign pick    = pick_done || pick_tell || (pub_valid_i && pub_ready_o);
  assign pick_q  = pick_done ? fl_q : pick_tell ? tell_q_i : pub_q_i;
  // Only with room for one more read: reads are taken back by this very machine.
  assign pub_ready_o = (st_q == StPick) && !pick_done && !tell_valid_i && !clear_i.valid &&
                       fl_ready;
  assign fl_pop      = (st_q == StRamWait) && ram_valid_i;
  assign ram_req_o   = (st_q == StRam);
  assign ram_addr_o  = {CtlEvent[11:6], rtag_q};

  // Range test of vring_need_event: was `wish` among the indexes told .. idx-1?
  wire [15:0] past  = idx_q - wish_q - 16'd1;
  wire [15:0] batch = idx_q - s_q.told;
  wire wanted = event_idx_i ? (past < batch) : (!wish_q[0] && batch != '0);
  wire no_vector = (vector_q == NoVector);

  assign rd_valid_o = (st_q == StRead);
  assign fl_wr      = rd_valid_o && rd_ready_i;
  always_comb begin
    rd_o        = '0;
    rd_o.area   = AreaDriver;
    rd_o.q      = q_q;
    rd_o.offset = event_idx_i ? 20'd4 + {7'd0, ring_size(ring), 1'b0} : 20'd0;
    rd_o.len    = 9'd2;
    rd_o.ptr    = CtlEvent | {6'd0, tag_q, 3'd0};
    rd_o.client = ClEvent;
    rd_o.tag    = {1'b0, tag_q};
  end
  assign irq_o     = '{valid: (st_q == StIrq), vector: {8'd0, vector_q}};
  assign irq_q_o   = q_q;
  assign isr_set_o = (st_q == StAnswer) && fire_q;
  assign told_valid_o = irq_o.valid ? irq_ready_i : (st_q == StAnswer) && tell_q && no_vector;
  assign told_asked_o = tell_q;
  assign told_sent_o  = irq_o.valid;
  assign idle_o    = (st_q == StPick) && !fl_valid && !pub_valid_i && !tell_valid_i;

  // After an interrupt for a visit that judged: what was published meanwhile is asked about now.
  // With a read on its way it will be asked about later.
  wire  again = (s_q.pub != s_q.told) && !s_q.reading;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      st_q   <= StPick;
      tag_q  <= '0;
      rtag_q <= '0;
    end else if (fn_rst_i) begin
      st_q   <= StPick;
      tag_q  <= '0;
      rtag_q <= '0;
    end else begin
      if (fl_wr) tag_q <= tag_q + 1'b1;
      if (fl_pop) rtag_q <= rtag_q + 1'b1;
      unique case (st_q)
        StPick: begin
          if (pick_done) st_q <= StRam;
          else if (pick_tell || (pub_valid_i && pub_ready_o)) st_q <= StLoad;
        end
        StRam: if (ram_gnt_i) st_q <= StRamWait;
        StRamWait: if (ram_valid_i) st_q <= StLoad;
        StLoad: st_q <= tell_q ? StAnswer : from_read_q ? StJudge : StPublished;
        StPublished: st_q <= (s_q.reading || (no_vector && msix_enabled_i)) ? StStore : StRead;
        StJudge: st_q <= StAnswer;
        StAnswer: begin
          if (fire_q && !no_vector) st_q <= StIrq;
          else st_q <= again ? StRead : StStore;
        end
        StIrq: if (irq_ready_i) st_q <= again ? StRead : StStore;
        StRead: if (fl_wr) st_q <= StStore;
        StStore: st_q <= StPick;
        default: st_q <= StPick;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (st_q)
      StPick: begin
        from_read_q <= pick_done;
        tell_q      <= pick_tell;
        q_q         <= pick_q;
        idx_q       <= pick_done ? fl_idx : pub_idx_i;
      end
      StRamWait: begin
        // A failed read counts as "always interrupt": better one too many.
        if (dn_err) wish_q <= event_idx_i ? idx_q - 16'd1 : 16'd0;
        else wish_q <= dn_addr1 ? ram_data_i[31:16] : ram_data_i[15:0];
      end
      StLoad: begin
        s_q      <= s_rd;
        vector_q <= vector;
        fire_q   <= tell_q;
      end
      StPublished: begin
        s_q.pub <= idx_q;
        if (!s_q.reading && no_vector && msix_enabled_i) s_q.told <= idx_q;
      end
      StJudge: begin
        fire_q      <= wanted;
        s_q.told    <= idx_q;
        s_q.reading <= 1'b0;
      end
      StRead: s_q.reading <= 1'b1;
      default: ;
    endcase
  end

  `FERRONIC_ASSERT(DoneFits, !(done_i.valid && cookie.client == ClEvent) || dn_ready,
                   clk_i, rst_ni)
  // A read was taken back, or there was room when the queue was picked.
  `FERRONIC_ASSERT(FlightFits, !fl_wr || fl_ready, clk_i, rst_ni)
  `FERRONIC_ASSERT(IrqHasVector, !irq_o.valid || !no_vector, clk_i, rst_ni)

  logic unused;
  assign unused = ^{fl_level, dn_level, cookie.tag, ram_data_i[63:32], cfg_i, clear_i.q, q_q,
                    pick_q, tell_q_i};
endmodule

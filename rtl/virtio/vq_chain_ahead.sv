// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Reads the rest of descriptor chains ahead of vq_walker, for the queue that is being served: the
// first Entries descriptors of an indirect table, or of what follows the head in the ring. Without
// it each buffer of more than one descriptor costs a round trip to the host.
//
// It looks at the heads behind the one that was taken last, one in four cycles, and keeps up to
// Slots chains, in the order of the heads. A slot is given back when its buffer is committed, all
// of them when another queue is served. What it does not have the walker reads itself.
//
// A read that fails or is never answered ends its slot with `err`; the walker then fails the chain.
//
// Invariants: nothing is read that a posted head does not name; a slot is used again only when its
// read has ended.
`include "ferronic_assert.svh"
module vq_chain_ahead
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  localparam int unsigned Slots = 8,
  localparam int unsigned Entries = 4,
  localparam int unsigned SlotW = $clog2(Slots)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             fn_rst_i,
  input  logic             run_i,
  input  logic             indirect_i,
  output logic             idle_o,

  // The queue: served anew or cleared (pulse); its heads are [commit_i, wr_i).
  input  logic             restart_i,
  input  qid_t             q_i,
  input  ring_t            ring_i,
  input  vq_ptr_t          commit_i,
  input  vq_ptr_t          wr_i,
  input  logic             take_i,       // head take_idx_i is taken
  input  vq_ptr_t          take_idx_i,

  // Heads: data with the cycle after the grant.
  output logic             head_re_o,
  input  logic             head_gnt_i,
  output vq_ptr_t          head_idx_o,
  input  vq_desc_t         head_i,

  output logic             rd_valid_o,
  input  logic             rd_ready_i,
  output vq_rd_t           rd_o,
  input  dma_rd_done_t     done_i,

  // The chain of take_idx_i is or will be there, until its buffer is committed.
  output logic             hit_o,
  output logic             ready_o,
  output logic             err_o,
  output logic [SlotW-1:0] slot_o,
  output logic [2:0]       count_o
);
  typedef enum logic [1:0] {StIdle, StLook, StJudge, StSend} st_e;
  st_e              st_q;
  logic             fresh_q;       // nothing was taken since the restart
  logic             flush_q;       // slots are of another queue
  logic             restart_q;     // which is known late
  vq_ptr_t          next_q;        // head to look at next
  vq_ptr_t          idx_q;         // that is looked at
  logic [SlotW:0]   head_q, tail_q, out_q;
  logic             sent_q, ended_q;       // to be counted in `out_q`
  logic [Slots-1:0] done_q, err_q;

  wire [SlotW-1:0] in_slot  = head_q[SlotW-1:0];
  wire [SlotW-1:0] out_slot = tail_q[SlotW-1:0];
  wire             any      = (head_q != tail_q);
  wire             full     = (head_q == {!tail_q[SlotW], tail_q[SlotW-1:0]});
  wire             sent     = rd_valid_o && rd_ready_i;

  vq_cookie_t cookie;
  assign cookie = vq_cookie_t'(done_i.cookie);
  wire done = done_i.valid && (cookie.client == ClAhead);

  // ---------------------------------------------------------------- slots
  vq_ptr_t    slot_idx;
  logic [2:0] n_q;
  prim_lutram #(.Width($bits(vq_ptr_t) + 3), .Depth(Slots)) u_slots (
    .clk_i, .we_i(sent), .waddr_i(in_slot), .wdata_i({idx_q, n_q}), .raddr_i(out_slot),
    .rdata_o({slot_idx, count_o})
  );
  wire vq_ptr_t ahead = slot_idx - commit_i;
  wire          past  = ahead[$bits(vq_ptr_t)-1];
  wire          pop   = any && done_q[out_slot] && (flush_q || past);

  // A head that is taken while it is looked at is left to the walker; once its read is offered that
  // is the only one. Of two reads of one chain the first would be for nothing.
  wire   taken   = take_i && (idx_q == take_idx_i);
  assign hit_o   = !flush_q && (any ? (slot_idx == take_idx_i)
                                    : (st_q == StSend) && (idx_q == take_idx_i));
  assign ready_o = any && done_q[out_slot];
  assign err_o   = err_q[out_slot];
  assign slot_o  = out_slot;

  // ---------------------------------------------------------------- looking
  // How many descriptors there are to read: of a table, or up to the end of the ring.
  vq_area_e    area_q;
  qid_t        q_q;
  logic [63:0] base_q;
  logic [11:0] first_q, size_q, table_size_q;
  logic        sound_q;
  wire         direct = (area_q == AreaDesc);
  wire [12:0]  from_first = {1'b0, size_q} - {1'b0, first_q};
  wire [12:0]  there  = direct ? from_first : {1'b0, table_size_q};
  wire         sound  = sound_q && !there[12] && (there != '0);
  wire [2:0]   n      = (there >= 13'(Entries)) ? 3'(Entries) : there[2:0];
  // Not at once with a restart: what is looked at then is dropped a cycle or two later.
  wire        go        = run_i && !flush_q && !fresh_q && (next_q != wr_i) && !full;

  assign head_re_o  = (st_q == StIdle) && go;
  assign head_idx_o = next_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      st_q      <= StIdle;
      fresh_q   <= 1'b1;
      flush_q   <= 1'b0;
      restart_q <= 1'b0;
      head_q    <= '0;
      tail_q    <= '0;
      out_q     <= '0;
      sent_q    <= 1'b0;
      ended_q   <= 1'b0;
    end else begin
      unique case (st_q)
        StIdle: if (head_re_o && head_gnt_i) st_q <= StLook;
        StLook: st_q <= taken ? StIdle : StJudge;
        StJudge: st_q <= (sound && !restart_q && !fresh_q && !taken) ? StSend : StIdle;
        StSend: if (rd_ready_i) st_q <= StIdle;
        default: st_q <= StIdle;
      endcase
      restart_q <= restart_i;
      if (restart_q) fresh_q <= 1'b1;
      else if (take_i) fresh_q <= 1'b0;
      if (restart_q) flush_q <= 1'b1;
      else if (!any && st_q != StSend) flush_q <= 1'b0;
      if (sent) head_q <= head_q + 1'b1;
      if (pop) tail_q <= tail_q + 1'b1;
      sent_q  <= sent;
      ended_q <= done;
      out_q   <= out_q + (SlotW + 1)'(sent_q) - (SlotW + 1)'(ended_q);
    end
  end
  always_ff @(posedge clk_i) begin
    if (take_i && (fresh_q || next_q == take_idx_i)) next_q <= take_idx_i + 1'b1;
    else if (head_re_o && head_gnt_i) next_q <= next_q + 1'b1;
    if (st_q == StIdle) idx_q <= next_q;
    if (sent) done_q[in_slot] <= 1'b0;
    if (done) begin
      done_q[cookie.tag[SlotW-1:0]] <= 1'b1;
      err_q[cookie.tag[SlotW-1:0]]  <= done_i.err;
    end
  end

  // ---------------------------------------------------------------- reads
  always_ff @(posedge clk_i) begin
    size_q <= ring_size(ring_i);
    if (st_q == StLook) begin
      area_q       <= head_i.indirect ? AreaAbs : AreaDesc;
      q_q          <= q_i;
      base_q       <= head_i.addr;
      first_q      <= head_i.indirect ? '0 : head_i.next;
      table_size_q <= head_i.len[15:4];
      sound_q      <= head_i.indirect ? (indirect_i && !head_i.next_valid && !head_i.len[16] &&
                                         head_i.len[3:0] == '0 && head_i.addr[1:0] == '0)
                                      : head_i.next_valid;
    end
    if (st_q == StJudge) n_q <= n;
  end
  assign rd_valid_o = (st_q == StSend);
  always_comb begin
    rd_o        = '0;
    rd_o.area   = area_q;
    rd_o.q      = q_q;
    rd_o.base   = base_q;
    rd_o.offset = {4'd0, first_q, 4'd0};
    rd_o.len    = {2'd0, n_q, 4'd0};
    rd_o.ptr    = CtlAhead | {3'd0, in_slot, 6'd0};
    rd_o.client = ClAhead;
    rd_o.tag    = {1'b0, in_slot};
  end

  assign idle_o = (st_q == StIdle) && !go && (out_q == '0) && !sent_q && !(flush_q && any);

  logic unused;
  assign unused = ^{cookie, ahead, head_i.write};

  `FERRONIC_ASSERT(OutInRange, out_q <= (SlotW + 1)'(Slots), clk_i, rst_ni)
  // What the DMA reader took as a function reset began ends, void, while that lasts.
  `FERRONIC_ASSERT(DoneIsOut, !ended_q || out_q != '0 || fn_rst_i, clk_i, rst_ni)
endmodule

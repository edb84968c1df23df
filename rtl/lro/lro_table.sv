// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The table of flows, and what becomes of each frame: passed on alone, begun as a unit, or appended
// to one, and which units close before or after.
//
// Contexts are found by a tag of 32 bits, the hashes of addresses and ports; lro_walk has compared
// whole headers by then, so that an equal tag of another flow is a header that differs. A frame
// whose flow cannot be told closes what has the same hash of addresses. A context whose unit is
// closed keeps its tag and its copy of headers until another flow needs it.
//
// While one frame is walked over, the next is looked up. A frame takes as long as its walk and one
// cycle; with a mark for low water two or three more behind the writer, so that buffers are counted
// when the frame before has taken its own. An operation is decided by what is open in the cycle in
// which the writer takes it.
//
// Invariants: tags of valid contexts differ; slots of contexts and the spare one are all different;
// nothing is appended to a unit that is not open.
`include "ferronic_assert.svh"
module lro_table
  import ferronic_pkg::*;
  import lro_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned Contexts = 16,
  parameter int unsigned QueuePairs = 4,
  parameter bit          Relaxed = 1'b0,  // that profile can be set
  localparam int unsigned CtxW = $clog2(Contexts)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                fn_rst_i,
  output logic                idle_o,        // no frame is here

  input  lro_cfg_t            cfg_i,
  input  logic                tso4_i,
  input  logic                tso6_i,
  input  logic                stop_i,        // nothing is opened or appended

  // Frames as they are stored, for the copy of their headers; and when they are whole.
  input  logic                beat_valid_i,
  input  logic                beat_first_i,
  input  logic                beat_last_i,
  input  logic [DataW-1:0]    beat_data_i,
  output logic                headers_ready_o,
  input  logic                frame_valid_i,
  output logic                frame_ready_o,
  input  rx_frame_t           frame_i,
  input  qid_t                frame_q_i,

  // What to do with a frame.
  output logic                op_valid_o,
  input  logic                op_ready_i,
  output lro_op_t             op_o,
  output logic [Contexts-1:0] op_close_o,    // units to be closed first
  output logic [CtxW-1:0]     op_ctx_o,

  // Few buffers are left in the queue of the frame at hand: a unit that is to be closed before.
  output qid_t                frame_q_o,
  input  vq_ptr_t             count_i,       // buffers in that queue
  input  logic                rest_i,        // no frame is taking any
  output logic                low_busy_o,    // it waits for that
  output logic                low_due_o,
  output logic [CtxW-1:0]     low_ctx_o,

  // What has become of it: the unit in the context of the last operation has the frame, as its
  // first if `opened_i`, or a unit is closed.
  input  logic                touch_i,
  input  logic                opened_i,
  input  logic [CtxW-1:0]     touch_ctx_i,
  input  qid_t                opened_q_i,
  input  logic [13:0]         opened_pay_i,
  input  logic [7:0]          opened_ttl_i,
  input  logic [15:0]         touch_total_i,  // of the unit from now on
  input  logic                closed_i,
  input  logic [CtxW-1:0]     closed_ctx_i,

  output logic [Contexts-1:0] open_o,
  input  qid_t                look_q_i,      // which of them are of a queue
  output logic [Contexts-1:0] look_open_o,
  input  logic [CtxW-1:0]     look_ctx_i,    // sizes of one
  output logic [13:0]         look_size_o,   // payload of its first segment
  output logic [15:0]         look_total_o   // bytes from the IP header on
);
  typedef logic [CtxW-1:0] ctx_t;
  typedef logic [Contexts-1:0] set_t;
  localparam int unsigned Slots = 2 * Contexts;
  localparam int unsigned SlotW = CtxW + 1;
  typedef logic [SlotW-1:0] slot_t;
  localparam int unsigned PairW = (QueuePairs > 1) ? $clog2(QueuePairs) : 1;
  typedef logic [PairW-1:0] pair_t;
  typedef struct packed {
    logic [15:0] addr;
    logic [15:0] port;
  } tag_t;

  if (Contexts < 4 || Contexts > 256 || (Contexts & (Contexts - 1)) != 0) begin : g_bad
    $error("%m: Contexts (%0d) must be a power of two from 4 to 256", Contexts);
  end

  function automatic ctx_t number(input set_t one);
    number = '0;
    for (int unsigned i = 0; i < Contexts; i++) if (one[i]) number |= ctx_t'(i);
  endfunction

  // ---------------------------------------------------------------- contexts
  tag_t [Contexts-1:0] tag_q;
  pair_t [Contexts-1:0] pair_q;
  set_t                valid_q, open_q;
  slot_t               spare_q;
  logic                accept, opens, appends;   // an operation is taken
  ctx_t                ctx;                      // its context

  assign open_o = open_q;
  for (genvar i = 0; i < int'(Contexts); i++) begin : g_look
    assign look_open_o[i] = open_q[i] && (pair_q[i] == look_q_i[PairW:1]) && !look_q_i[0];
  end

  // Slots of headers: context i begins with slot i.
  ctx_t init_q;
  logic init_done_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      init_q      <= '0;
      init_done_q <= 1'b0;
    end else if (!init_done_q) begin
      init_q      <= init_q + 1'b1;
      init_done_q <= (init_q == '1);
    end
  end

  // ---------------------------------------------------------------- the next frame
  logic        pre_valid_q, pre_looked_q, pre_same_q, pre_same_addr_q;
  rx_frame_t   pre_q;
  qid_t        pre_queue_q;
  set_t        pre_hit_q, pre_hit, pre_addr_q, pre_addr;  // same tag, same addresses
  tag_t        pre_tag, cur_tag_q;
  slot_t       pre_slot;
  logic        start, cur_valid_q;
  assign pre_tag = '{addr: pre_q.verdict.addr_hash, port: pre_q.verdict.port_hash};
  wire pre_same_addr = (pre_tag.addr == cur_tag_q.addr);
  wire pre_same      = pre_same_addr && (pre_tag.port == cur_tag_q.port);
  for (genvar i = 0; i < int'(Contexts); i++) begin : g_hit
    wire mine = opens && (ctx == ctx_t'(i));
    wire addr = valid_q[i] && (tag_q[i].addr == pre_tag.addr);
    assign pre_addr[i] = mine ? pre_same_addr : addr;
    assign pre_hit[i]  = mine ? pre_same : addr && (tag_q[i].port == pre_tag.port);
  end
  // The one that is opened now is not in `pre_hit_q` yet.
  set_t start_hit, start_addr;
  for (genvar i = 0; i < int'(Contexts); i++) begin : g_start_hit
    wire mine = opens && (ctx == ctx_t'(i));
    assign start_hit[i]  = mine ? pre_same_q : pre_hit_q[i];
    assign start_addr[i] = mine ? pre_same_addr_q : pre_addr_q[i];
  end

  assign frame_ready_o = (!pre_valid_q || start) && init_done_q;
  assign start         = pre_valid_q && pre_looked_q && (!cur_valid_q || accept);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      pre_valid_q  <= 1'b0;
      pre_looked_q <= 1'b0;
      cur_valid_q  <= 1'b0;
    end else begin
      if (frame_ready_o) pre_valid_q <= frame_valid_i;
      pre_looked_q <= pre_valid_q && !frame_ready_o;
      cur_valid_q  <= start || (cur_valid_q && !accept);
    end
  end
  always_ff @(posedge clk_i) begin
    if (frame_ready_o) begin
      pre_q       <= frame_i;
      pre_queue_q <= frame_q_i;
    end
    pre_hit_q       <= pre_hit;
    pre_addr_q      <= pre_addr;
    pre_same_q      <= pre_same;
    pre_same_addr_q <= pre_same_addr;
  end

  // ---------------------------------------------------------------- this frame
  logic [15:0] cur_ptr_q;
  logic [13:0] cur_len_q;
  qid_t        cur_queue_q;
  pair_t       cur_pair;
  assign       cur_pair = cur_queue_q[PairW:1];
  set_t        hit_q, addr_hit_q, same_pair;
  ctx_t        hit_ctx_q;
  logic        walked, differs;
  lro_segment_t seg;

  always_ff @(posedge clk_i) begin
    if (start) begin
      cur_ptr_q <= pre_q.ptr;
      cur_len_q <= pre_q.len[13:0];
      cur_queue_q <= pre_queue_q;
      cur_tag_q <= pre_tag;
      hit_q     <= start_hit;
      addr_hit_q <= start_addr;
    end
    hit_ctx_q   <= number(hit_q);
  end

  lro_latest_t latest;
  // The copy of headers that the next is compared with is that of this frame.
  wire keeps = opens || (Relaxed && appends);
  lro_walk #(.DataW(DataW), .Slots(Slots), .Relaxed(Relaxed)) u_walk (
    .clk_i, .rst_ni, .fn_rst_i,
    .beat_valid_i, .beat_first_i, .beat_last_i, .beat_data_i,
    .ready_o  (headers_ready_o),
    .start_i  (start),
    .frame_i  (pre_q),
    .slot_i   ((keeps && pre_same_q) ? spare_q : pre_slot),
    .spare_i  (spare_q),
    .done_o   (walked),
    .segment_o(seg),
    .differs_o(differs),
    .relaxed_i(Relaxed && cfg_i.relaxed),
    .latest_o (latest),
    .take_i   (accept)
  );

  for (genvar i = 0; i < int'(Contexts); i++) begin : g_pair
    assign same_pair[i] = (pair_q[i] == cur_pair);
  end

  // ---------------------------------------------------------------- compared with what is held
  typedef struct packed {
    logic [31:0] seq;      // next sequence number
    logic [15:0] id;       // next identification
    logic [ 1:0] tags;
    logic [15:0] total;
  } state_t;
  state_t      held, state_wd;
  logic [31:0] next_seq_q;
  logic [15:0] next_id_q, next_total_q;
  logic [13:0] size;
  logic [15:0] long_total;
  logic        long_carry;
  logic        moved_q, sequence_q, id_q, larger_q, smaller_q, length_q, alone_q;
  logic        hold_q, tags_q;
  wire         relaxed = Relaxed && cfg_i.relaxed;
  logic [13:0] most_q;           // largest payload, and least time to live, with this frame
  logic [ 7:0] least_q;
  assign {long_carry, long_total} = {1'b0, held.total} + 17'(seg.pay);

  always_ff @(posedge clk_i) begin
    next_seq_q   <= seg.seq + 32'(seg.pay);
    next_id_q    <= seg.id + 16'd1;
    next_total_q <= long_total;
    // With another number of tags other bytes were compared.
    tags_q       <= (seg.head.tags != held.tags);
    moved_q      <= ((hit_q & ~same_pair) != '0);
    sequence_q   <= (seg.seq != held.seq);
    id_q         <= !seg.head.v6 && (seg.id != held.id);
    larger_q     <= (seg.pay > size) && !relaxed;
    smaller_q    <= (seg.pay < size) && !relaxed;
    length_q     <= long_carry || (long_total > cfg_i.max_bytes);
    // It ends a unit of its own, or would be too large for one.
    alone_q      <= seg.push || (16'(seg.total) > cfg_i.max_bytes);
    hold_q       <= (cfg_i.strict || relaxed) && (seg.head.v6 ? tso6_i : tso4_i);
  end

  // What the last operation takes is open a little later.
  wire  take = opens || appends;
  set_t taken_q, unfree;
  ctx_t free_ctx_q, oldest;
  logic free_any_q;
  assign unfree = open_q | taken_q;
  always_ff @(posedge clk_i) begin
    free_any_q <= (unfree != '1);
    free_ctx_q <= '0;
    for (int unsigned i = 0; i < Contexts; i++) if (!unfree[i]) free_ctx_q <= ctx_t'(i);
  end

  // ---------------------------------------------------------------- decided
  wire  hit      = (hit_q != '0);
  wire  hit_open = ((hit_q & open_q) != '0);
  wire  other    = differs || tags_q;
  wire  refused  = moved_q || other || sequence_q || id_q || larger_q || length_q;
  wire  holds    = (seg.cls == ClsHold) && hold_q && !stop_i;
  wire  evicts   = holds && !hit && !alone_q && !free_any_q;
  assign appends = accept && holds && hit_open && !refused;
  assign opens   = accept && holds && !(hit_open && !refused) && !alone_q;
  assign ctx     = hit ? hit_ctx_q : free_any_q ? free_ctx_q : oldest;
  assign accept  = op_valid_o && op_ready_i;
  // With a mark for low water, what the frame before took must be seen in the count.
  logic rest_q, counted_q;
  always_ff @(posedge clk_i) begin
    rest_q    <= rest_i;
    counted_q <= (rest_q && rest_i) || (cfg_i.low_water == '0);
  end
  assign op_valid_o = cur_valid_q && walked && !low_busy_o && counted_q;
  assign op_ctx_o   = ctx;

  lro_cause_e why;
  always_comb begin
    op_close_o = '0;
    why        = seg.cause;
    unique case (seg.cls)
      ClsQueue: begin
        for (int unsigned i = 0; i < Contexts; i++) begin
          op_close_o[i] = open_q[i] && same_pair[i];
        end
      end
      ClsAddresses: op_close_o = open_q & addr_hit_q;
      ClsFlow:      op_close_o = open_q & hit_q;
      ClsHold: begin
        why = !holds ? LroStopped : moved_q ? LroMoved : other ? LroHeader :
              sequence_q ? LroSequence : id_q ? LroId : larger_q ? LroLarger : LroLength;
        // What may not be held any more does not overtake what is.
        if (hit_open && (refused || !holds)) op_close_o = hit_q;
        if (evicts) begin
          why = LroEvicted;
          op_close_o[oldest] = 1'b1;
        end
      end
      default: ;
    endcase
  end
  always_comb begin
    op_o.kind    = !holds ? LroPass : (hit_open && !refused) ? LroAppend : alone_q ? LroPass
                                                                                  : LroOpen;
    op_o.ptr     = cur_ptr_q;
    op_o.len     = cur_len_q;
    op_o.q       = cur_queue_q;
    op_o.cause   = why;
    op_o.alone   = alone_q;
    op_o.last    = seg.push || smaller_q;
    op_o.total   = next_total_q;
    op_o.segment = seg;
    op_o.latest  = latest;
    if (Relaxed) begin
      op_o.latest.size = most_q;
      op_o.latest.ttl  = least_q;
    end
  end

  // ---------------------------------------------------------------- kept
  wire ctx_t held_ctx = hit_ctx_q;
  assign state_wd = '{seq: next_seq_q, id: next_id_q, tags: seg.head.tags,
                      total: appends ? next_total_q : 16'(seg.total)};
  prim_lutram #(.Width(50), .Depth(Contexts)) u_next (
    .clk_i, .we_i(take), .waddr_i(ctx), .wdata_i({state_wd.seq, state_wd.id, state_wd.tags}),
    .raddr_i(held_ctx), .rdata_o({held.seq, held.id, held.tags}));

  // For the next frame sizes are there at once, and set anew if a frame that was to be appended
  // began a unit. The copies for closing are of what the unit has.
  wire         size_we = keeps || opened_i;
  wire ctx_t   size_wa = opened_i ? touch_ctx_i : ctx;
  wire [13:0]  size_wd = opened_i ? opened_pay_i : (Relaxed && appends) ? most_q : seg.pay;
  wire [15:0]  total_wd = opened_i ? touch_total_i : state_wd.total;
  prim_lutram #(.Width(14), .Depth(Contexts)) u_size (
    .clk_i, .we_i(size_we), .waddr_i(size_wa), .wdata_i(size_wd), .raddr_i(held_ctx),
    .rdata_o(size));
  prim_lutram #(.Width(14), .Depth(Contexts)) u_size_look (
    .clk_i, .we_i(opened_i), .waddr_i(touch_ctx_i), .wdata_i(opened_pay_i), .raddr_i(look_ctx_i),
    .rdata_o(look_size_o));
  prim_lutram #(.Width(16), .Depth(Contexts)) u_total (
    .clk_i, .we_i(size_we || appends), .waddr_i(size_wa), .wdata_i(total_wd), .raddr_i(held_ctx),
    .rdata_o(held.total));
  prim_lutram #(.Width(16), .Depth(Contexts)) u_total_look (
    .clk_i, .we_i(touch_i), .waddr_i(touch_ctx_i), .wdata_i(touch_total_i), .raddr_i(look_ctx_i),
    .rdata_o(look_total_o));

  set_t  low_set;
  logic  low_find, low_found, low_idle;
  ctx_t  low_at;
  if (Relaxed) begin : g_relaxed
    logic [7:0] ttl;
    prim_lutram #(.Width(8), .Depth(Contexts)) u_ttl (
      .clk_i, .we_i(size_we), .waddr_i(size_wa),
      .wdata_i(opened_i ? opened_ttl_i : appends ? least_q : seg.ttl), .raddr_i(held_ctx),
      .rdata_o(ttl));
    always_ff @(posedge clk_i) begin
      most_q  <= (seg.pay > size) ? seg.pay : size;
      least_q <= (seg.ttl < ttl) ? seg.ttl : ttl;
    end
  end else begin : g_strict
    assign most_q  = '0;
    assign least_q = '0;
    logic unused_relaxed;
    assign unused_relaxed = ^opened_ttl_i;
  end

  slot_t slot_old;
  wire ctx_t pre_ctx = number(pre_hit_q);
  wire slot_we = keeps || !init_done_q;
  wire ctx_t  slot_wa = init_done_q ? ctx : init_q;
  wire slot_t slot_wd = init_done_q ? spare_q : slot_t'(init_q);
  prim_lutram #(.Width(SlotW), .Depth(Contexts)) u_slot (
    .clk_i, .we_i(slot_we), .waddr_i(slot_wa), .wdata_i(slot_wd), .raddr_i(ctx),
    .rdata_o(slot_old));
  prim_lutram #(.Width(SlotW), .Depth(Contexts)) u_slot_pre (
    .clk_i, .we_i(slot_we), .waddr_i(slot_wa), .wdata_i(slot_wd), .raddr_i(pre_ctx),
    .rdata_o(pre_slot));

  lro_order #(.Contexts(Contexts)) u_order (
    .clk_i, .rst_ni,
    .clr_i   (fn_rst_i),
    .open_i  (opened_i),
    .close_i (closed_i),
    .ctx_i   (closed_i ? closed_ctx_i : touch_ctx_i),
    .oldest_o(oldest),
    .find_i  (low_find),
    .among_i (low_set),
    .found_o (low_found),
    .at_o    (low_at)
  );

  // ---------------------------------------------------------------- few buffers
  assign frame_q_o = cur_queue_q;
  assign low_set   = open_q & same_pair;
  lro_low #(.Contexts(Contexts), .AtOnce(DataW > 64)) u_low (
    .clk_i, .rst_ni, .fn_rst_i,
    .mark_i (cfg_i.low_water),
    .start_i(start),
    .take_i (accept),
    .count_i,
    .open_i (open_q),
    .of_q_i (low_set),
    .closed_i, .closed_ctx_i,
    .find_o (low_find),
    .found_i(low_found),
    .at_i   (low_at),
    .busy_o (low_busy_o),
    .idle_o (low_idle),
    .due_o  (low_due_o),
    .ctx_o  (low_ctx_o)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
      open_q  <= '0;
      taken_q <= '0;
      spare_q <= slot_t'(Contexts);
    end else begin
      if (opens) valid_q[ctx] <= 1'b1;
      if (keeps) spare_q <= slot_old;
      if (accept || touch_i) begin
        for (int unsigned i = 0; i < Contexts; i++) taken_q[i] <= take && (ctx == ctx_t'(i));
      end
      if (opened_i) open_q[touch_ctx_i] <= 1'b1;
      if (closed_i) open_q[closed_ctx_i] <= 1'b0;
      if (fn_rst_i) open_q <= '0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (opens) begin
      tag_q[ctx]   <= cur_tag_q;
    end
    if (opens || opened_i) pair_q[opened_i ? touch_ctx_i : ctx] <= opened_i ? opened_q_i[PairW:1]
                                                                             : cur_pair;
  end

  assign idle_o = !pre_valid_q && !cur_valid_q && !frame_valid_i && low_idle;

  logic unused;
  assign unused = ^{look_q_i, opened_q_i, cfg_i};

  `FERRONIC_ASSERT(OneTag, !cur_valid_q || $onehot0(hit_q), clk_i, rst_ni)
  `FERRONIC_ASSERT(ClosesOpenOnes, !accept || ((op_close_o & ~open_q) == '0), clk_i, rst_ni)
  `FERRONIC_ASSERT(AppendsToOpen, !appends || open_q[ctx], clk_i, rst_ni)
  `FERRONIC_ASSERT(OpensClosed, !opened_i || !open_q[touch_ctx_i], clk_i, rst_ni)
endmodule

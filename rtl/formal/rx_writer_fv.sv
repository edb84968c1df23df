// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Proof of rx_writer with what closes its units: no buffer is claimed twice, published twice, or
// kept over a reset of its queue.
//
// Followed is one buffer. The claims, at ports: a used entry names it only if it was given for that
// queue and had none since (`once`); it is not given back once an entry of it is on its way
// (`kept`); when the block is idle each buffer that it took for good is an open unit's, and when it
// says that all is flushed it has none (`lost`); units of a queue that was reset are gone before
// another frame is taken (`gone`), and do not count as closed (`silent`); only what is open is
// closed (`alive`).
//
// By induction: the rest says which states are consistent, that is, where in the block the buffer
// may be: in one place at most, and in none if the block does not have it. This alone looks inside.
//
// Abstract: the table (which contexts are open, for which queue), the walker (any buffer in any
// order, none, or a broken chain), dma_write, timers, the rest of the card, each at any pace, and
// all lengths. Assumed: an operation opens a context that is not open or that it closes, and
// appends at least a byte to one that is, of its queue; a queue is reset in a pause, when the block
// was idle; what pass 1 of a frame has walked is there in pass 2, and is enough; after a broken
// chain there are no more buffers.
module rx_writer_fv
  import ferronic_pkg::*;
  import lro_pkg::*;
  import rx_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned Contexts = 4,
  parameter int unsigned Buffers = 4,     // of a unit
  parameter int unsigned Tokens = 4,
  parameter bit          Any = 1'b0,      // begin in any state that is consistent, not in reset
  parameter bit          Inside = 1'b1,   // and show that it stays consistent
  parameter bit          Overlap = 1'b1,
  localparam int unsigned CtxW = $clog2(Contexts)
) (
  input logic        clk_i,
  input logic        pause_i,
  input logic        flush_i,
  input logic        due_i,
  input logic [CtxW-1:0] due_ctx_i,
  input logic        low_due_i,
  input logic [CtxW-1:0] low_ctx_i,
  input logic        clear_i,
  input logic        clear_of_i,
  input logic        mrg_i,
  input logic        lossless_i,
  input logic        driver_ok_i,
  // An operation.
  input logic        op_valid_i,
  input lro_kind_e   op_kind_i,
  input logic        op_q_i,
  input logic        both_i,          // both queues are in use; else what waits comes to the first
  input logic        op_alone_i,
  input logic        op_last_i,
  input logic        op_push_i,
  input logic [ 3:0] op_pay_i,
  input logic [ 3:0] op_len_i,
  input logic [Contexts-1:0] op_close_i,
  input logic [CtxW-1:0] op_ctx_i,
  // The walker.
  input logic        req_ready_i,
  input logic        seg_valid_i,
  input logic        none_i,
  input logic        off_i,
  input logic        mine_i,          // the buffer followed
  input logic        err_i,
  input logic        last_i,
  input logic [ 4:0] len_i,
  input logic        avail_i,
  // Writes, used ring, RAM.
  input logic        cmd_ready_i,
  input logic        done_i,
  input logic        used_ready_i,
  input logic        scratch_ready_i,
  input logic        patch_ready_i
);
  typedef logic [CtxW-1:0] ctx_t;
  typedef logic [Contexts-1:0] set_t;

  logic rst_n = Any;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  // ---------------------------------------------------------------- the block
  logic         idle, op_ready, opened, closed, flushed, req_valid, req_ready, seg_valid,
                seg_ready, commit, rewind, cmd_valid, used_valid;
  qid_t         look_q, req_q, commit_q, rewind_q;
  ctx_t         ctx, close_ctx;
  lro_op_t      op;
  lro_segment_t segment;
  lro_event_t   event_out;
  vq_seg_t      seg;
  vq_used_t     used;
  set_t         open_q, look_open, stale_q;
  logic [Contexts-1:0] pair_q;        // the queue of each unit

  always_comb begin
    segment             = '0;
    segment.push        = op_push_i;
    segment.pay         = 14'(op_pay_i);
    op         = '0;
    op.kind    = op_kind_i;
    op.len     = 14'(op_len_i);
    op.q       = {5'd0, op_q_i, 1'b0};
    op.alone   = op_alone_i;
    op.last    = op_last_i;
    op.segment = segment;
  end
  for (genvar i = 0; i < int'(Contexts); i++) begin : g_look
    assign look_open[i] = open_q[i] && (pair_q[i] == look_q[1]);
  end

  rx_writer #(
    .RxWaitCycles(2), .MaxBuffers(4), .Contexts(Contexts), .Overlap(Overlap)
  ) u_dut (
    .clk_i,
    .rst_ni             (rst_n),
    .fn_rst_i           (1'b0),
    .pause_i,
    .idle_o             (idle),
    .stalled_o          (),
    .pairs_in_use_i     (both_i ? 7'd2 : 7'd1),
    .mrg_rxbuf_i        (mrg_i),
    .driver_ok_i,
    .lossless_i,
    .op_valid_i,
    .op_ready_o         (op_ready),
    .op_i               (op),
    .op_close_i,
    .op_ctx_i,
    .open_i             (open_q),
    .look_q_o           (look_q),
    .look_open_i        (look_open),
    .close_ctx_o        (close_ctx),
    .look_size_i        ('0),
    .look_total_i       ('0),
    .opened_o           (opened),
    .ctx_o              (ctx),
    .opened_pay_o       (),
    .touch_total_o      (),
    .closed_o           (closed),
    .touch_o            (),
    .due_i,
    .due_ctx_i,
    .due_hold_i         (1'b0),
    .low_due_i, .low_ctx_i,
    .lro_event_o        (event_out),
    .flush_i,
    .flushed_o          (flushed),
    .clear_i            ('{valid: clear_i, q: {5'd0, clear_of_i, 1'b0}}),
    .scratch_hold_o     (),
    .scratch_valid_o    (),
    .scratch_ready_i,
    .scratch_word_o     (),
    .scratch_data_o     (),
    .scratch_ptr_i      ('0),
    .release_valid_o    (),
    .release_len_o      (),
    .patch_valid_o      (),
    .patch_ready_i,
    .patch_ptr_o        (),
    .patch_num_buffers_o(),
    .buf_req_valid_o    (req_valid),
    .buf_req_ready_i    (req_ready),
    .buf_req_q_o        (req_q),
    .seg_valid_i        (seg_valid),
    .seg_ready_o        (seg_ready),
    .seg_i              (seg),
    .buf_commit_o       (commit),
    .buf_commit_q_o     (commit_q),
    .buf_rewind_o       (rewind),
    .buf_rewind_q_o     (rewind_q),
    .buf_avail_i        (avail_i),
    .wr_cmd_valid_o     (cmd_valid),
    .wr_cmd_ready_i     (cmd_ready_i),
    .wr_cmd_o           (),
    .wr_done_i          (done_i),
    .used_valid_o       (used_valid),
    .used_ready_i,
    .used_o             (used),
    .event_o            (),
    .drop_nobuf_o       (),
    .drop_other_o       ()
  );

  // ---------------------------------------------------------------- the table
  wire  op_fire = op_valid_i && op_ready;
  set_t one_op;
  logic stale_closed_q, idle_q, cleared_q;
  always_comb begin
    one_op           = '0;
    one_op[op_ctx_i] = 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_n) begin
      open_q         <= '0;
      stale_q        <= '0;
      stale_closed_q <= 1'b0;
      idle_q         <= 1'b0;
      cleared_q      <= 1'b0;
    end else begin
      if (op_fire && op_kind_i == LroOpen) pair_q[op_ctx_i] <= op_q_i;
      if (opened) begin
        open_q[ctx] <= 1'b1;
        pair_q[ctx] <= commit_q[1];
      end
      if (clear_i) stale_q <= stale_q | look_open;
      if (closed) begin
        open_q[close_ctx]  <= 1'b0;
        stale_q[close_ctx] <= 1'b0;
      end
      stale_closed_q <= closed && stale_q[close_ctx];
      idle_q         <= idle && pause_i;
      cleared_q      <= clear_i;
    end
  end

  // States by their numbers in the block.
  localparam logic [3:0] Idle = 4'd0, Req = 4'd1, Seg = 4'd2, Dec = 4'd3, Skip = 4'd4,
                         Patch = 4'd5, Wait = 4'd6, Drop = 4'd7, Begin = 4'd8, Close = 4'd9,
                         End = 4'd10;

  // ---------------------------------------------------------------- the walker and the buffer
  // The one followed has id 0 in the first queue; ids mean nothing to the block.
  logic walk_q, name_q, none_q, off_q, dead_q;
  logic given_q;                       // the block has it
  logic spec_q;                        // and may give it back
  logic own_q;                         // it is an open unit's
  ctx_t ctx_q;
  wire  req_fire  = req_valid && req_ready;
  wire  seg_fire  = seg_valid && seg_ready;
  wire  gives     = req_fire && mine_i;
  wire  used_fire = used_valid && used_ready_i;
  wire  used_it   = used_fire && (used.id == '0) && (used.q == '0);
  logic [4:0] out_q;                   // writes that are not done
  logic [3:0] left_q;                  // buffers that pass 1 has counted, to come in pass 2
  assign req_ready = !walk_q && !commit && !rewind && req_ready_i;
  assign seg_valid = walk_q && seg_valid_i;
  always_comb begin
    seg      = '0;
    seg.none = none_q;
    seg.off  = none_q && off_q;
    seg.err  = !none_q && err_i;
    seg.last = last_i || err_i;
    seg.id   = {15'd0, !name_q};
    seg.len  = 32'(len_i) + 32'd1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_n) begin
      walk_q  <= 1'b0;
      dead_q  <= 1'b0;
      given_q <= 1'b0;
      spec_q  <= 1'b0;
      own_q   <= 1'b0;
      out_q   <= '0;
    end else begin
      out_q <= out_q + 5'(cmd_valid && cmd_ready_i) - 5'(done_i);
      if (seg_fire) begin
        if (seg.none || seg.last) walk_q <= 1'b0;
        if (seg.err) dead_q <= 1'b1;
      end
      if (req_fire) begin
        walk_q <= 1'b1;
        name_q <= mine_i;
        none_q <= none_i;
        off_q  <= off_i;
      end
      if (u_dut.state_q == Patch) left_q <= 4'(u_dut.bufs_q);
      else if (req_fire) left_q <= left_q - 4'd1;
      if (used_it) given_q <= 1'b0;
      if (commit && spec_q) begin
        spec_q <= 1'b0;
        own_q  <= (u_dut.kind_q != LroPass);
        ctx_q  <= ctx;
      end
      if (closed && close_ctx == ctx_q) own_q <= 1'b0;
      if (rewind && spec_q) begin
        given_q <= 1'b0;
        spec_q  <= 1'b0;
      end
      if (gives) begin
        given_q <= 1'b1;
        spec_q  <= 1'b1;
        own_q   <= 1'b0;
      end
      if (clear_i && !clear_of_i) begin
        given_q <= 1'b0;
        spec_q  <= 1'b0;
        own_q   <= 1'b0;
      end
    end
  end

  // ---------------------------------------------------------------- assumptions
  logic seg_wait_q, err_q, last_q;
  logic [4:0] len_q;
  always_ff @(posedge clk_i) begin
    seg_wait_q <= rst_n && seg_valid && !seg_ready;
    err_q      <= err_i;
    last_q     <= last_i;
    len_q      <= len_i;
  end
  always_comb begin
    if (!rst_n) assume (!op_valid_i && !clear_i);
    assume (!low_due_i || open_q[low_ctx_i]);
    assume (!clear_i || (pause_i && (idle_q || cleared_q)));
    assume (!done_i || out_q != '0);
    if (op_valid_i) begin
      assume (op_pay_i != '0);
      assume (op_kind_i == LroPass || op_kind_i == LroOpen || op_kind_i == LroAppend);
      assume ((op_close_i & ~open_q) == '0);
      if (op_kind_i == LroOpen) assume (!op_alone_i && op_close_i == (open_q & one_op));
      if (op_kind_i == LroAppend) begin
        assume (open_q[op_ctx_i] && op_q_i == pair_q[op_ctx_i] && op_close_i == '0);
      end
    end
    assume (!seg_wait_q || (seg_valid_i && err_i == err_q && last_i == last_q && len_i == len_q));
    if (req_fire) begin
      assume (!mine_i || (!none_i && !req_q[1] && !given_q && !spec_q));
      assume (!dead_q || none_i);
      assume (!u_dut.pass2_q || (!none_i && left_q != '0));
    end
    assume (!u_dut.pass2_q || !err_i);
  end

  // ---------------------------------------------------------------- inside
  localparam logic [2:0] ClIdle = 3'd0, ClLoad = 3'd1, ClList = 3'd5, ClToken = 3'd6, ClDone = 3'd7;
  wire [3:0] st   = u_dut.state_q;
  wire [3:0] then_q = u_dut.after_q;
  wire       is_append = (u_dut.kind_q == LroAppend);
  wire       is_open   = (u_dut.kind_q == LroOpen);
  wire ctx_t c    = u_dut.ctx_q;
  wire       tail = u_dut.tail_q;
  wire       two  = u_dut.pass2_q;
  wire [5:0] full = u_dut.full_q;
  wire       ours = (u_dut.q_q == '0);
  wire       ok   = !u_dut.seg_err_q && !u_dut.seg_none_q;
  wire       seg_it = (u_dut.seg_id_q == '0) && ours;
  // The frame at hand is under way, its last command not taken.
  wire       early = (st == Req) || (st == Seg) || (st == Dec) || (st == Patch) ||
                     (st == Skip && !two);
  wire       late  = (st == Skip) && two;
  wire set_t set    = u_dut.g_closing.u_closing.set_q;
  wire set_t forget = u_dut.g_closing.u_closing.forget_q;
  wire       picked  = u_dut.g_closing.u_closing.picked_q;
  wire       closing = u_dut.g_closing.u_closing.closing_q;
  wire ctx_t cl_ctx = u_dut.g_closing.u_closing.ctx_q;
  wire [2:0] cl_st  = u_dut.g_closing.u_closing.u_close.st_q;
  wire [5:0] cl_at  = u_dut.g_closing.u_closing.u_close.at_q;
  wire       cl_forget = u_dut.g_closing.u_closing.u_close.forget_q;

  // Records of the units.
  lro_unit_end_t  rec [Contexts];
  lro_unit_head_t head [Contexts];
  logic [Contexts-1:0][Buffers-1:0] ids;   // listed: the buffer followed or another
  logic [Contexts-1:0] rec_ids, heads, rec_small, head_ok;
  logic [Contexts-1:0][5:0] fulls;
  for (genvar i = 0; i < int'(Contexts); i++) begin : g_rec
    assign rec[i]  = lro_unit_end_t'(u_dut.g_units.u_units.u_end.mem[i]);
    assign head[i] = lro_unit_head_t'(u_dut.g_units.u_units.u_head.mem[i]);
    assign rec_ids[i] = (rec[i].buffer.id == '0);
    assign fulls[i]   = rec[i].full;
    assign rec_small[i] = (rec[i].full < 6'(Buffers));
    assign heads[i]   = (head[i].q == '0);
    assign head_ok[i] = (head[i].q == {5'd0, pair_q[i], 1'b0});
    for (genvar j = 0; j < int'(Buffers); j++) begin : g_list
      lro_buffer_t listed;
      assign listed = lro_buffer_t'(u_dut.g_units.u_units.u_list.mem[Buffers*i + j]);
      assign ids[i][j] = (listed.id == '0);
    end
  end

  // Where it is.
  logic [Contexts-1:0] flux;           // open, but its record comes with the command at hand
  logic [Contexts-1:0][Buffers:0] at_unit;
  logic [Buffers:0] at_frame;
  logic [Tokens-1:0] at_token;
  logic at_hand;
  localparam int unsigned TokW = $clog2(Tokens);
  wire [TokW:0] wptr = u_dut.u_tokens.u_fifo.wptr_q;
  wire [TokW:0] rptr = u_dut.u_tokens.u_fifo.rptr_q;
  wire [TokW:0] level = wptr - rptr;
  for (genvar i = 0; i < int'(Tokens); i++) begin : g_token
    rx_token_t token;
    wire [TokW-1:0] offset = TokW'(i) - rptr[TokW-1:0];
    assign token = rx_token_t'(u_dut.u_tokens.u_fifo.u_mem.mem[i]);
    assign at_token[i] = ({1'b0, offset} < level) && token.used && (token.id == '0) &&
                         (token.q == '0);
  end
  always_comb begin
    for (int i = 0; i < int'(Contexts); i++) begin
      flux[i] = is_open && (st == Dec) && (c == ctx_t'(i));
      for (int j = 0; j < int'(Buffers); j++) begin
        at_unit[i][j] = open_q[i] && !flux[i] && !forget[i] && heads[i] &&
                        (6'(j) < fulls[i]) && ids[i][j] &&
                        !(closing && cl_ctx == ctx_t'(i) && 6'(j) < cl_at);
      end
      at_unit[i][Buffers] = open_q[i] && !flux[i] && !forget[i] && heads[i] && rec_ids[i] &&
                            !(closing && cl_ctx == ctx_t'(i) && fulls[i] < cl_at);
    end
    // Of the frame at hand, not yet of a unit.
    for (int j = 0; j < int'(Buffers); j++) begin
      at_frame[j] = ours && ids[c][j] &&
                    ((early && is_append && !tail && 6'(j) > fulls[c] && 6'(j) < full) ||
                     (early && is_open && 6'(j) < full) ||
                     (late && is_open && 6'(j) < fulls[c]));
    end
    at_frame[Buffers] = late && is_open && ours && rec_ids[c];
    at_hand = (st == Seg && walk_q && name_q) || (st == Dec && !tail && ok && seg_it);
  end

  // ---------------------------------------------------------------- what must hold
  wire once   = !used_it || given_q;
  wire kept   = !(rewind && spec_q) || given_q;
  wire gone   = !(op_fire || opened) || (stale_q == '0);
  wire silent = !stale_closed_q || !event_out.closed;
  wire alive  = !closed || open_q[close_ctx];
  wire lost   = (idle && given_q && !spec_q && !(own_q && open_q[ctx_q])) ||
                (flushed && given_q && !spec_q) || (idle && spec_q && !dead_q);

  // What is consistent inside.
  logic places, units, frames, walks, closes, resets;
  wire  writes_alone = two && !is_open && !is_append && (st != Idle);  // pass 2, no unit
  wire  anywhere = ({at_unit, at_frame, at_token, at_hand} != '0);
  always_comb begin
    // One place at most, and only what the block has; what it has is somewhere, but in pass 1.
    places = $onehot0({at_unit, at_frame, at_token, at_hand}) && (given_q || !anywhere) &&
             (!given_q || spec_q || anywhere) &&
             (!spec_q || !given_q || dead_q || (!two && !u_dut.first_q) || anywhere);
    // What is on its way, or gone, is not given back.
    if (spec_q && (at_token != '0 || !given_q) && !writes_alone) places = 1'b0;
    if ((at_frame != '0 || at_hand) && !spec_q) places = 1'b0;
    if (spec_q && !dead_q && !(ours && u_dut.taken_q && (early || late))) places = 1'b0;
    if (level > (TokW + 1)'(Tokens)) places = 1'b0;

    // The records of open units.
    units = 1'b1;
    for (int i = 0; i < int'(Contexts); i++) begin
      if (at_unit[i] != '0 && !(own_q && !spec_q && ctx_q == ctx_t'(i)) &&
          !(spec_q && late && is_append && c == ctx_t'(i))) units = 1'b0;
      if (open_q[i] && !head_ok[i] && !(st == Close && is_open && c == ctx_t'(i) && set[i]))
        units = 1'b0;
      if (open_q[i] && flux[i] && u_dut.q_q[1] != pair_q[i]) units = 1'b0;
      if (open_q[i] && !flux[i] && !rec_small[i]) units = 1'b0;
    end

    // The frame at hand: one that is appended goes on where its unit's record ends, ...
    frames = (u_dut.q_q[6:2] == '0) && !u_dut.q_q[0] && (u_dut.kind_q != 2'd3);
    if (is_append && (early || late || st == Begin)) begin
      if (!open_q[c] || u_dut.q_q != {5'd0, pair_q[c], 1'b0}) frames = 1'b0;
      if (tail && (full != fulls[c] || (u_dut.seg_id_q == '0) != rec_ids[c] || two)) frames = 1'b0;
      if (early && !tail) begin
        if (full <= fulls[c] || full > 6'(Buffers) || fulls[c] > 6'(Buffers - 2) ||
            ids[c][fulls[c][1:0]] != rec_ids[c]) frames = 1'b0;
        if ((!two || st == Patch) && full != fulls[c] + 6'd1) frames = 1'b0;
      end
      if (late && full != fulls[c]) frames = 1'b0;
    end
    if (st == Wait && is_append) frames = 1'b0;
    if (tail && !(is_append && st == Dec && ok && u_dut.seg_last_q)) frames = 1'b0;
    if (tail && u_dut.seg_fits_q && u_dut.seg_len_q == '0) frames = 1'b0;
    if (tail && u_dut.more_q && full > 6'(Buffers - 2)) frames = 1'b0;
    if (tail && u_dut.left_q != (u_dut.seg_len_q != '0)) frames = 1'b0;
    if (st == Begin && (!is_append || two || u_dut.segment_q.pay == '0)) frames = 1'b0;
    if ((tail || st == Begin) && (u_dut.taken_q || !u_dut.first_q)) frames = 1'b0;
    // ... one that opens a unit does so with its last command, ...
    if (is_open && (early || late || st == Wait || st == Drop)) begin
      if (open_q[c] != (st == Dec && ok && !tail && u_dut.seg_last_q && u_dut.seg_fits_q &&
                        (u_dut.first_q || two))) frames = 1'b0;
      if (full > 6'(Buffers) || ((!two || st == Patch) && full != '0)) frames = 1'b0;
      if (late && (full != fulls[c] || !rec_small[c])) frames = 1'b0;
    end
    // ... and pass 2 finds room for all of its buffers.
    if (two && (is_append || is_open) && (st == Req || st == Seg || st == Dec) &&
        full + 6'(left_q) + 6'(st != Req) > 6'(Buffers)) frames = 1'b0;
    if (two && !(early || late)) frames = 1'b0;
    if (st == Patch && spec_q) frames = 1'b0;
    if ((two || st == Seg || st == Skip || st == Patch || (st == Dec && !tail)) && !u_dut.taken_q)
      frames = 1'b0;

    // The walker and the segment at hand.
    walks = (u_dut.seg_id_q[15:11] == '0);
    if (walk_q && !(st == Seg || st == Skip || (st == Dec && ok && !u_dut.seg_last_q)))
      walks = 1'b0;
    if (!walk_q && (st == Seg || st == Skip || (st == Dec && !tail && ok && !u_dut.seg_last_q)))
      walks = 1'b0;
    if (walk_q && none_q && (st == Skip || st == Dec || two || name_q)) walks = 1'b0;
    if (walk_q && name_q && (!ours || !spec_q)) walks = 1'b0;
    if (walk_q && st == Dec && (u_dut.seg_id_q == '0) != name_q) walks = 1'b0;
    if (two && st == Dec && !ok) walks = 1'b0;
    if (dead_q && (two || (walk_q && !none_q) || st == Skip || st == Patch ||
                   (st == Dec && !tail && ok))) walks = 1'b0;
    if (!dead_q && st == Dec && u_dut.seg_err_q) walks = 1'b0;

    // Closing: an entry for each buffer from the first on, none of a unit that is forgotten.
    closes = (set & ~open_q) == '0 && (forget & ~open_q) == '0 && stale_q == forget;
    if (st != Close && (set != '0 || picked || closing)) closes = 1'b0;
    if (picked && !set[cl_ctx]) closes = 1'b0;
    if (closing && !picked) closes = 1'b0;
    if (closing != (cl_st != ClIdle)) closes = 1'b0;
    if (closing && cl_forget != forget[cl_ctx]) closes = 1'b0;
    if (closing && cl_forget && cl_st != ClLoad && cl_st != ClDone) closes = 1'b0;
    if (closing && cl_st != ClList && cl_st != ClToken && cl_st != ClDone && cl_at != '0)
      closes = 1'b0;
    if (picked && !closing && cl_at != '0) closes = 1'b0;
    if ((cl_st == ClList || cl_st == ClToken) && cl_at > fulls[cl_ctx]) closes = 1'b0;
    if (cl_st == ClDone && cl_at != (cl_forget ? 6'd0 : fulls[cl_ctx] + 6'd1)) closes = 1'b0;
    if (cl_st == ClToken && cl_at != fulls[cl_ctx] &&
        (u_dut.listed.id == '0) != ids[cl_ctx][cl_at[1:0]]) closes = 1'b0;
    if (st == Close && then_q != Idle) begin
      if (then_q != Req && then_q != Wait && then_q != Drop && then_q != Begin) closes = 1'b0;
      if (is_open && (full != '0 || (open_q[c] && !set[c]))) closes = 1'b0;
      if (is_append && then_q != Drop && then_q != Begin) closes = 1'b0;
      if (then_q == Begin && (!is_append || set != '0 || two || !u_dut.first_q || u_dut.taken_q ||
                              u_dut.segment_q.pay == '0 || !open_q[c] ||
                              u_dut.q_q != {5'd0, pair_q[c], 1'b0})) closes = 1'b0;
    end
    if (st == End && is_append && u_dut.end_q && !open_q[c]) closes = 1'b0;
    if (st > End) closes = 1'b0;
    if (st == Dec && !ok && u_dut.of_queue_q != look_open) closes = 1'b0;

    // A reset meets an idle block, and goes before any frame.
    resets = 1'b1;
    if (idle_q && (!(st == Idle || st == Wait) || set != '0 || (forget != '0 && !cleared_q)))
      resets = 1'b0;
    if ((cleared_q || forget != '0) &&
        !(st == Idle || st == Wait || (st == Close && (then_q == Idle || then_q == Wait))))
      resets = 1'b0;
    if ((idle_q || cleared_q || forget != '0) && u_dut.may_q) resets = 1'b0;
    if (idle_q && u_dut.wants_q) resets = 1'b0;
    if (cleared_q && u_dut.wants_q && st != Close && forget == '0) resets = 1'b0;
    if (cleared_q && (set & ~forget) != '0) resets = 1'b0;
    if ((idle_q || cleared_q) && level != '0) resets = 1'b0;
  end
  wire consistent = places && units && frames && walks && closes && resets;

  // A proof by induction: all of it holds in a cycle if it held in the one before, whatever state
  // that was; and it holds from reset on.
  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb begin
    if (Any && !started_q) assume (once && kept && gone && silent && alive && !lost && consistent);
  end
  always_comb begin
    if (rst_n) begin
      Once: assert (once);
      Kept: assert (kept);
      Gone: assert (gone);
      Silent: assert (silent);
      Alive: assert (alive);
      NotLost: assert (!lost);
      if (Inside) Consistent: assert (consistent);
    end
  end

  logic unused;
  assign unused = ^{rewind_q, req_q, look_q, flushed};
endmodule

// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Writes received frames into the buffers of their queue, alone or as parts of a unit (LRO).
//
// A buffer of one segment that holds header and frame is written at once. Otherwise pass 1 walks
// buffers and counts until the frame fits, gives them back, num_buffers is patched into the header,
// and pass 2 walks them again and writes. A token follows each command, so that a used entry goes
// out only after the write that filled its buffer is done, and the slot is freed after the last.
//
// The first frame of a unit is written in the same way, but its buffers are kept. The payload of
// the others goes on behind it; if the buffer at hand is too small for it, that is filled first,
// and the rest finds its buffers like a frame. Where this cannot be done (too many buffers, none
// left, a buffer of several segments) the unit is closed and the frame begins another. Units are
// closed by lro_close between frames, or while a frame waits for buffers, as the table, timers or a
// change of settings ask for it; those of a queue that runs out of buffers all at once.
//
// Latency: two cycles from frame to request (three without Overlap, where what is to be closed is
// looked at first), one from segment to command. Throughput: three cycles a frame of one segment
// (five without Overlap), and the walker's latency; a command waits while those before are
// written. An appended segment takes three cycles if it needs no buffer. No frame goes on while
// units are closed.
//
// Invariants: commands and tokens with `cmd` are in the same order; used entries of a frame or unit
// leave in the order of its buffers, `publish` on the last one only; slots are freed in order; no
// unit is closed while a frame is being written.
`include "ferronic_assert.svh"
module rx_writer
  import ferronic_pkg::*;
  import lro_pkg::*;
  import rx_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned RxWaitCycles = 12500,
  parameter int unsigned MaxBuffers = 64, // of one frame: what the walker can give back
  parameter bit          Lro = 1'b1,      // units are there at all
  parameter bit          Relaxed = 1'b0,  // as of lro_table
  parameter int unsigned Contexts = 16,
  // Whether the next frame is taken in the cycle in which the last command of this one is; costs a
  // long path, and where a frame takes eight beats it gains nothing.
  parameter bit          Overlap = 1'b0,
  localparam int unsigned CtxW = $clog2(Contexts)
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         fn_rst_i,
  input  logic         pause_i,
  output logic         idle_o,
  output logic         stalled_o,
  output logic         rest_o,          // no frame is being written

  input  logic [6:0]   pairs_in_use_i,
  input  logic         mrg_rxbuf_i,
  input  logic         driver_ok_i,
  input  logic         lossless_i,

  // What to do with a frame, and which units to close before.
  input  logic         op_valid_i,
  output logic         op_ready_o,
  input  lro_op_t      op_i,
  input  logic [Contexts-1:0] op_close_i,
  input  logic [CtxW-1:0] op_ctx_i,

  // The table of units.
  input  logic [Contexts-1:0] open_i,
  output qid_t         look_q_o,
  input  logic [Contexts-1:0] look_open_i,
  output logic [CtxW-1:0] close_ctx_o,
  input  logic [13:0]  look_size_i,
  input  logic [15:0]  look_total_i,
  output logic         opened_o,        // for `op_ctx_i` as it was, with the frame at hand
  output logic [CtxW-1:0] ctx_o,
  output logic [13:0]  opened_pay_o,
  output logic [7:0]   opened_ttl_o,
  output logic [15:0]  touch_total_o,
  output logic         closed_o,        // of `close_ctx_o`
  output logic         touch_o,         // a segment came to `ctx_o`
  input  logic         due_i,
  input  logic [CtxW-1:0] due_ctx_i,
  input  logic         due_hold_i,
  input  logic         low_due_i,       // few buffers are left: this one is to be delivered
  input  logic [CtxW-1:0] low_ctx_i,
  output lro_event_t   lro_event_o,
  // Deliver all that is held, and begin nothing until the request is gone.
  input  logic         flush_i,
  output logic         flushed_o,
  input  vq_clear_t    clear_i,         // what is held for a queue is gone

  output logic         scratch_hold_o,
  output logic         scratch_valid_o,
  input  logic         scratch_ready_i,
  output logic [1:0]   scratch_word_o,
  output logic [DataW-1:0] scratch_data_o,
  input  logic [15:0]  scratch_ptr_i,

  output logic         release_valid_o,
  output logic [15:0]  release_len_o,
  output logic         patch_valid_o,
  input  logic         patch_ready_i,
  output logic [15:0]  patch_ptr_o,
  output logic [15:0]  patch_num_buffers_o,

  output logic         buf_req_valid_o,
  input  logic         buf_req_ready_i,
  output qid_t         buf_req_q_o,
  input  logic         seg_valid_i,
  output logic         seg_ready_o,
  input  vq_seg_t      seg_i,
  output logic         buf_commit_o,
  output qid_t         buf_commit_q_o,
  output logic         buf_rewind_o,
  output qid_t         buf_rewind_q_o,
  input  logic         buf_avail_i,

  output logic         wr_cmd_valid_o,
  input  logic         wr_cmd_ready_i,
  output dma_wr_cmd_t  wr_cmd_o,
  input  logic         wr_done_i,

  output logic         used_valid_o,
  input  logic         used_ready_i,
  output vq_used_t     used_o,
  output frame_event_t event_o,
  output logic         drop_nobuf_o,
  output logic         drop_other_o
);
  if (RxWaitCycles < 2) begin : g_bad_wait
    $error("%m: RxWaitCycles (%0d) must be at least 2", RxWaitCycles);
  end

  localparam int unsigned WaitW = $clog2(RxWaitCycles + 1);
  localparam int unsigned BufW = $clog2(MaxBuffers + 1);

  typedef enum logic [3:0] {
    StIdle  = 4'd0,
    StReq   = 4'd1, // ask for a buffer
    StSeg   = 4'd2, // wait for a segment
    StDec   = 4'd3, // use it
    StSkip  = 4'd4, // segments of this buffer that are not needed
    StPatch = 4'd5, // num_buffers into the header
    StWait  = 4'd6, // no buffer: wait, then ask again from the first
    StDrop  = 4'd7, // hand a token without command behind the frame
    StBegin = 4'd8, // load the end of a unit
    StClose = 4'd9, // close units, then go on with `after_q`
    StEnd   = 4'd10 // the frame has ended its unit
  } state_e;

  // ---------------------------------------------------------------- this frame
  state_e      state_q;
  qid_t        q_q;
  logic [15:0] ptr_q;      // slot; in pass 2 the next byte to write
  logic [13:0] len_q;      // bytes of the frame
  logic [13:0] need_q;     // bytes without a buffer so far
  logic [16:0] buf_len_q;  // bytes in this buffer so far
  logic [BufW-1:0] bufs_q; // buffers counted in pass 1
  logic        first_q;    // the next segment is the first of the first buffer
  logic        pass2_q;
  logic        written_q;  // a command of this frame was issued
  logic        other_q;    // cause of a drop
  logic        patch_q;    // num_buffers is being patched

  // Of a unit.
  typedef logic [CtxW-1:0] ctx_t;
  typedef logic [Contexts-1:0] set_t;
  lro_kind_e    kind_q;
  lro_segment_t segment_q;
  lro_latest_t  latest_q;           // of the unit with this segment
  logic [15:0]  total_q;
  logic         again_q;            // it began a unit or waited though that was not to be seen
  logic         alone_q, end_q;     // the frame would not begin a unit; it ends the one it comes to
  ctx_t         ctx_q;
  logic         tail_q;             // the segment at hand is the end of the unit
  logic         left_q;               // the end has room
  logic         more_q, mergeable_q;  // another buffer may follow the end; may at all
  logic         taken_q;            // buffers were asked for
  logic [5:0]   full_q;             // buffers of the unit before the one at hand
  lro_unit_end_t  unit_end, new_end;
  lro_unit_head_t unit_head;

  // Units to be closed.
  state_e       after_q;            // what comes then
  logic         closing, close_busy, close_done, close_counted, close_cmd, close_last, close_tok,
                close_publish;
  ctx_t         close_ctx;
  lro_cause_e   closed_cause;
  dma_wr_cmd_t  close_wr;
  lro_buffer_t  close_buffer;
  set_t         forget;             // units whose queue is gone
  set_t         of_queue_q;         // units of the frame's queue, while it looks for buffers
  wire          forgets = (forget != '0);
  wire          due = due_i && open_i[due_ctx_i];
  wire          close_wants = forgets || (!pause_i && ((flush_i && open_i != '0) || due ||
                                                       low_due_i));

  // The segment under decision.
  logic        seg_none_q, seg_off_q, seg_err_q, seg_last_q, seg_fits_q;
  logic [15:0] seg_id_q;
  logic [63:0] seg_addr_q;
  logic [16:0] seg_len_q;
  logic        req_ok_q;   // the driver was ready when the buffer was asked for

  logic        tok_wr_valid, tok_wr_ready;
  rx_token_t   tok_wr;
  logic        scratch_done, all_done;  // no write is out
  logic        drain;                   // those from before a reset are waited for

  // Waiting for buffers.
  logic [4:0]       retry_q;
  logic             avail_q;   // buffers came since the walker was asked
  logic [WaitW-1:0] wait_q;
  logic             waiting_q, expired_q;

  wire ok = !seg_err_q && !seg_none_q;
  wire appends = Lro && (kind_q == LroAppend);
  // The unit cannot go on into another buffer.
  wire no_more = tail_q && !seg_fits_q && !more_q;
  wire nothing_left = tail_q && !left_q;
  wire issue = (state_q == StDec) && ok && !no_more && !nothing_left &&
               (tail_q || pass2_q || (first_q && seg_last_q && seg_fits_q));
  wire cmd_taken = issue && tok_wr_ready && wr_cmd_ready_i; // of a frame
  wire [13:0] put_len = seg_fits_q ? need_q : seg_len_q[13:0];
  // A cycle old: what is begun in the cycle in which a pause or a flush comes goes before it.
  logic may_q, wants_q;
  wire  may_begin = op_valid_i && may_q;
  // The headers of a unit must lie in one piece.
  wire no_room = (kind_q == LroOpen) && first_q && !pass2_q && !seg_fits_q &&
                 (seg_len_q < 17'(VirtioHdrBytes) + 17'(segment_q.head.pay_at));

  // The frame is over for this machine.
  wire done_issue = cmd_taken && seg_fits_q && seg_last_q;
  wire done_skip  = (state_q == StSkip) && pass2_q && seg_valid_i && (seg_i.last || seg_i.err);
  wire done_drop  = (state_q == StDrop) && tok_wr_ready;
  wire ends_unit  = appends && end_q;
  // The next frame may come at once only if the table knows what becomes of this one.
  wire load_now   = (state_q == StIdle) ||
                    (Overlap && ((done_issue && !ends_unit && !again_q) || done_drop ||
                                 (done_skip && kind_q == LroPass)));
  wire load       = may_begin && load_now;
  assign op_ready_o = load_now && may_q;
  assign rest_o     = (state_q == StIdle);

  // Frames that nobody will ever take are dropped at once, unless the wire may wait for the driver.
  // In a pause a queue may be off for a while, and until the driver was there when it was asked.
  wire give_up = !pause_i && ((seg_off_q && (!lossless_i || req_ok_q)) ||
                              (expired_q && !lossless_i));
  wire too_small = seg_last_q && !seg_fits_q && !tail_q &&
                   (!mrg_rxbuf_i || bufs_q == BufW'(MaxBuffers - 1));
  // Buffers that pass 1 has counted are too many for a unit.
  wire too_many = {1'b0, full_q} + 7'(bufs_q) > 7'(UnitBuffers);

  // A segment that cannot be appended begins another unit, or goes alone.
  wire dec_fails = (state_q == StDec) && !ok;
  wire fatal     = seg_err_q || written_q;
  wire anew      = appends && (((state_q == StDec) && (ok ? (no_more || (!issue && too_small))
                                                          : !fatal)) ||
                               ((state_q == StPatch) && too_many));
  // Out of buffers: all that the queue holds is delivered, so that the driver can post again.
  wire starved   = dec_fails && !fatal && (of_queue_q != '0);

  // A queue that is not in use any more while its frame waits for a buffer.
  wire astray = ({1'b0, q_q[QidW-1:1]} >= pairs_in_use_i);

  function automatic state_e begins(input lro_kind_e kind);
    begins = (kind == LroAppend) ? StBegin : StReq;
  endfunction
  function automatic set_t one(input ctx_t ctx);
    one = '0;
    one[ctx] = 1'b1;
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      state_q   <= StIdle;
      first_q   <= 1'b1;
      pass2_q   <= 1'b0;
      written_q <= 1'b0;
      other_q   <= 1'b0;
      retry_q   <= '0;
      avail_q   <= 1'b0;
      wait_q    <= '0;
      waiting_q <= 1'b0;
      expired_q <= 1'b0;
      tail_q    <= 1'b0;
      again_q   <= 1'b0;
      patch_q   <= 1'b0;
    end else begin
      if (waiting_q && !pause_i && !expired_q) begin
        wait_q    <= wait_q + 1'b1;
        expired_q <= wait_q == WaitW'(RxWaitCycles - 1);
      end
      avail_q <= buf_avail_i || (avail_q && !(state_q == StReq && buf_req_ready_i));
      unique case (state_q)
        StIdle: if (wants_q) state_q <= StClose;
        StClose: if (!close_busy) state_q <= after_q;
        StEnd:   state_q <= StClose;
        StBegin: begin
          tail_q  <= 1'b1;
          state_q <= StDec;
        end
        StReq: if (buf_req_ready_i) state_q <= StSeg;
        StSeg: if (seg_valid_i) state_q <= StDec;
        StDec: begin
          if (!ok) begin
            // Once something is written the buffers that pass 1 has seen must be there.
            other_q <= fatal;
            if (fatal || give_up) state_q <= StDrop;
            else state_q <= StWait;
            if (starved || appends) state_q <= StClose;
            pass2_q   <= 1'b0;
            waiting_q <= 1'b1;
            retry_q   <= '0;
          end else if (no_more) begin
            tail_q  <= 1'b0;
            state_q <= StClose;
          end else if (tail_q) begin
            // The rest finds its buffers like a frame.
            if (nothing_left || cmd_taken) begin
              tail_q  <= 1'b0;
              state_q <= StReq;
            end
          end else if (issue) begin
            if (cmd_taken) begin
              first_q   <= 1'b0;
              written_q <= 1'b1;
              if (seg_fits_q) state_q <= StSkip; // unless it was the last one, see below
              else state_q <= seg_last_q ? StReq : StSeg;
            end
          end else begin
            first_q <= 1'b0;
            other_q <= 1'b0;
            if (seg_fits_q) begin
              pass2_q <= seg_last_q;
              if (!seg_last_q) state_q <= StSkip;
              else state_q <= StPatch;
            end else if (too_small) begin
              state_q <= appends ? StClose : StDrop;
            end else begin
              state_q <= seg_last_q ? StReq : StSeg;
            end
          end
        end
        StSkip: begin
          if (seg_valid_i && !pass2_q) begin
            other_q <= seg_i.err;
            if (seg_i.err) begin
              state_q <= appends ? StClose : StDrop;
            end else if (seg_i.last) begin
              pass2_q <= 1'b1;
              state_q <= StPatch;
            end
          end
        end
        StPatch: begin
          // The patch is offered from the second cycle on.
          patch_q <= (bufs_q != BufW'(1)) && !appends;
          if (appends && too_many) state_q <= StClose;
          else if (patch_q ? patch_ready_i : (bufs_q == BufW'(1) || appends)) begin
            state_q <= StReq;
            patch_q <= 1'b0;
          end
        end
        StWait: begin
          first_q <= 1'b1;
          retry_q <= retry_q + 1'b1;
          if (wants_q) state_q <= StClose;
          else if (!pause_i && !forgets && (buf_avail_i || avail_q || retry_q == '1)) begin
            state_q <= StReq;
          end
        end
        default: ; // StDrop: below
      endcase
      if (anew) begin
        first_q <= 1'b1;
        pass2_q <= 1'b0;
      end
      if (anew || state_q == StWait) again_q <= 1'b1;
      if (done_issue || done_skip || done_drop || load) begin
        // Whether there is anything to close is seen a cycle later where there is one to spare.
        if (load) state_q <= (Lro && (!Overlap || op_close_i != '0)) ? StClose : begins(op_i.kind);
        else state_q <= ((ends_unit || (Lro && done_skip)) && !done_drop) ? StEnd : StIdle;
        again_q   <= 1'b0;
        first_q   <= 1'b1;
        pass2_q   <= 1'b0;
        written_q <= 1'b0;
        waiting_q <= 1'b0;
        expired_q <= 1'b0;
        wait_q    <= '0;
        tail_q    <= 1'b0;
      end
    end
  end

  wire seg_fits = (|seg_i.len[31:14]) || (seg_i.len[13:0] >= need_q);
  // A buffer of the unit is full.
  wire  list_we = (kind_q != LroPass) && !no_more && ok && seg_last_q && !seg_fits_q &&
                  (cmd_taken || (state_q == StDec && nothing_left));

  // Of the frame.
  wire [13:0] whole = len_q + 14'(VirtioHdrBytes);
  logic [15:0] slot_q;    // of the frame
  logic [13:0] rest_q;    // `need_q` where it looks for buffers
  always_ff @(posedge clk_i) begin
    if (load) begin
      slot_q    <= op_i.ptr;
      len_q     <= op_i.len;
      alone_q   <= op_i.alone;
      end_q     <= op_i.last;
      ctx_q     <= op_ctx_i;
      total_q   <= op_i.total;
      segment_q <= op_i.segment;
      latest_q  <= Relaxed ? op_i.latest : '0;
    end
    if (load) ptr_q <= op_i.ptr;
    else if (state_q == StBegin) ptr_q <= slot_q + 16'(VirtioHdrBytes) +
                                          16'(segment_q.head.pay_at);
    else if (anew) ptr_q <= slot_q;
    else if (cmd_taken) ptr_q <= ptr_q + 16'(put_len);

    if (load) q_q <= op_i.q;
    else if (state_q == StWait && astray) q_q <= '0;

    if (load) kind_q <= op_i.kind;
    else if (anew) kind_q <= alone_q ? LroPass : LroOpen;
    else if ((state_q == StDec && ok && no_room) || (state_q == StWait && flush_i) ||
             (state_q == StPatch && kind_q == LroOpen && too_many)) kind_q <= LroPass;

    if (load) rest_q <= op_i.len + 14'(VirtioHdrBytes);
    else if (anew) rest_q <= whole;
    else if (tail_q && cmd_taken) rest_q <= need_q - put_len;
    else if (state_q == StBegin) rest_q <= segment_q.pay;

    if (load) need_q <= op_i.len + 14'(VirtioHdrBytes);
    else if (anew) need_q <= whole;
    else if (state_q == StBegin) need_q <= segment_q.pay;
    else if (state_q == StWait || state_q == StPatch) need_q <= rest_q;
    else if (state_q == StDec && ok && !seg_fits_q && (!issue || cmd_taken)) begin
      need_q <= need_q - put_len;
    end

    of_queue_q <= look_open_i;
    if (state_q == StReq) req_ok_q <= driver_ok_i;
    if (load || anew) taken_q <= 1'b0;
    else if (state_q == StReq) taken_q <= 1'b1;
    if (state_q == StBegin) buf_len_q <= unit_end.buffer.len;
    else if (state_q == StReq) buf_len_q <= '0;
    else if (cmd_taken) buf_len_q <= buf_len_q + 17'(put_len);

    if (load || anew || state_q == StWait) bufs_q <= '0;
    else if (state_q == StDec && !issue && !tail_q && (seg_last_q || seg_fits_q)) begin
      bufs_q <= bufs_q + 1'b1;
    end

    if (state_q == StBegin) begin
      more_q      <= unit_end.more && unit_end.full <= 6'(UnitBuffers - 2);
      mergeable_q <= unit_end.more;
      left_q      <= (unit_end.left != '0);
    end
    if (load || anew) full_q <= '0;
    else if (state_q == StBegin) full_q <= unit_end.full;
    else if (list_we) full_q <= full_q + 6'd1;

    if (state_q == StSeg && seg_valid_i) begin
      seg_none_q <= seg_i.none;
      seg_off_q  <= seg_i.off;
      seg_err_q  <= seg_i.err;
      seg_last_q <= seg_i.last;
      seg_id_q   <= seg_i.id;
      seg_addr_q <= seg_i.addr;
      seg_len_q  <= seg_i.len[16:0];
      seg_fits_q <= seg_fits;
    end else if (state_q == StBegin) begin
      seg_none_q <= 1'b0;
      seg_off_q  <= 1'b0;
      seg_err_q  <= 1'b0;
      seg_last_q <= 1'b1;
      seg_id_q   <= {5'd0, unit_end.buffer.id};
      seg_addr_q <= unit_end.addr;
      seg_len_q  <= unit_end.left;
      seg_fits_q <= (unit_end.left >= 17'(segment_q.pay));
    end
  end

  // ---------------------------------------------------------------- units
  // A unit is open before its last command is taken, so that the next frame finds it.
  wire  opens_here = (state_q == StSeg) && seg_valid_i && !seg_i.none && !seg_i.err &&
                     seg_i.last && seg_fits && (first_q || pass2_q);
  assign opened_o       = Lro && (kind_q == LroOpen) && (opens_here || (done_skip && !seg_i.err));
  assign ctx_o          = ctx_q;
  assign opened_pay_o   = segment_q.pay;
  assign opened_ttl_o   = segment_q.ttl;
  assign touch_total_o  = appends ? total_q : 16'(segment_q.total);
  wire  end_we = cmd_taken && seg_fits_q && kind_q != LroPass;
  assign touch_o        = opened_o || (end_we && appends);
  lro_latest_t latest;
  always_comb begin
    latest = latest_q;
    // It begins one.
    if (!appends) begin
      latest.size = segment_q.pay;
      latest.ttl  = segment_q.ttl;
    end
  end
  assign new_end = '{
    merged: appends, more: tail_q ? mergeable_q : mrg_rxbuf_i && seg_last_q, full: full_q,
    buffer: '{id: seg_id_q[10:0], len: buf_len_q + 17'(put_len)},
    left: seg_len_q - 17'(put_len), addr: seg_addr_q + 64'(put_len),
    latest: Relaxed ? latest : '0
  };
  lro_buffer_t listed;
  logic        list_re;
  logic [5:0]  list_at;
  logic [63:0] unit_first;
  if (Lro) begin : g_units
    lro_units #(.Contexts(Contexts)) u_units (
      .clk_i,
      .wctx_i    (ctx_q),
      .first_we_i(cmd_taken && kind_q == LroOpen && !written_q),
      .first_i   (seg_addr_q),
      .head_we_i (opened_o),
      .head_i    ('{q: q_q, head: segment_q.head}),
      .end_we_i  (end_we),
      .end_i     (new_end),
      .list_we_i (list_we),
      .list_at_i (full_q),
      .list_i    (new_end.buffer),
      .rctx_i    (closing ? close_ctx : ctx_q),
      .first_o   (unit_first),
      .head_o    (unit_head),
      .end_o     (unit_end),
      .list_re_i (list_re),
      .list_rat_i(list_at),
      .list_o    (listed)
    );
  end else begin : g_no_units
    assign {unit_first, unit_head, unit_end, listed} = '0;
    logic unused_units;
    assign unused_units = ^{closing, new_end, list_we, list_re, list_at};
  end

  // ---------------------------------------------------------------- closing
  // What is to be closed, and what comes then.
  logic       close_load;
  set_t       close_set;
  lro_cause_e close_cause;
  state_e     after;
  always_comb begin
    close_load  = 1'b1;
    close_set   = one(ctx_q);
    close_cause = LroNoBuffer;
    after       = StDrop;
    if (load) begin
      close_set   = op_close_i;
      close_cause = op_i.cause;
      after       = begins(op_i.kind);
    end else if (state_q == StIdle || state_q == StWait) begin
      close_load  = wants_q;
      close_set   = forgets ? forget : flush_i ? open_i : low_due_i ? one(low_ctx_i) :
                    due ? one(due_ctx_i) : '0;
      close_cause = flush_i ? LroStopped : low_due_i ? LroLowWater : due_hold_i ? LroHold : LroGap;
      after       = state_q;
    end else if (dec_fails) begin
      close_load  = starved || appends;
      if (starved) close_set = of_queue_q | (appends ? one(ctx_q) : '0);
      if (!fatal && !give_up) after = StWait;
    end else if (state_q == StEnd) begin
      if (!ends_unit) close_set = '0;
      close_cause = segment_q.push ? LroPush : LroSmaller;
      after       = StIdle;
    end else if (anew) begin
      close_cause = LroBuffers;
      after       = StReq;
    end else begin
      close_load  = appends && (state_q == StSkip) && seg_valid_i && seg_i.err && !pass2_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (close_load) after_q <= after;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      may_q   <= 1'b0;
      wants_q <= 1'b0;
    end else begin
      may_q   <= !pause_i && !drain && !close_wants && !flush_i;
      wants_q <= close_wants;
    end
  end

  assign close_ctx_o = close_ctx;
  assign closed_o    = close_done;
  assign look_q_o    = clear_i.valid ? clear_i.q : q_q;
  if (Lro) begin : g_closing
    lro_closing #(.DataW(DataW), .Contexts(Contexts), .Relaxed(Relaxed)) u_closing (
      .clk_i, .rst_ni, .fn_rst_i,
      .load_i         (close_load),
      .set_i          (close_set),
      .cause_i        (close_cause),
      .busy_o         (close_busy),
      .closing_o      (closing),
      .forget_i       (clear_i.valid),
      .forget_set_i   (look_open_i),
      .forget_o       (forget),
      .open_i,
      .ctx_o          (close_ctx),
      .closed_o       (close_done),
      .counted_o      (close_counted),
      .cause_o        (closed_cause),
      .free_i         (scratch_done),
      .first_i        (unit_first),
      .head_i         (unit_head),
      .end_i          (unit_end),
      .size_i         (look_size_i),
      .total_i        (look_total_i),
      .list_re_o      (list_re),
      .list_at_o      (list_at),
      .list_i         (listed),
      .scratch_hold_o, .scratch_valid_o, .scratch_ready_i, .scratch_word_o, .scratch_data_o,
      .scratch_ptr_i,
      .cmd_valid_o    (close_cmd),
      .cmd_last_o     (close_last),
      .cmd_ready_i    (wr_cmd_ready_i && tok_wr_ready),
      .cmd_o          (close_wr),
      .tok_valid_o    (close_tok),
      .tok_ready_i    (tok_wr_ready),
      .tok_o          (close_buffer),
      .tok_publish_o  (close_publish)
    );
  end else begin : g_no_closing
    assign {closing, close_busy, forget, close_ctx, close_done, close_counted} = '0;
    assign {list_re, list_at} = '0;
    assign {close_cmd, close_wr, close_tok, close_buffer, close_publish} = '0;
    assign {close_last, scratch_hold_o, scratch_valid_o, scratch_word_o, scratch_data_o} = '0;
    assign closed_cause = LroStopped;
    logic unused_closing;
    assign unused_closing = ^{scratch_done, close_load, close_set, close_cause, scratch_ready_i,
                              scratch_ptr_i,
                              look_size_i, look_total_i, unit_first, listed};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) lro_event_o <= '0;
    else begin
      lro_event_o.closed <= close_counted && !fn_rst_i;
      lro_event_o.cause  <= closed_cause;
      lro_event_o.opened <= opened_o && !fn_rst_i;
      lro_event_o.merged <= end_we && appends && !fn_rst_i;
    end
  end
  assign flushed_o = flush_i && !may_q && (open_i == '0) && !forgets && all_done &&
                     ((state_q == StIdle) || (state_q == StWait));

  assign buf_req_valid_o = (state_q == StReq);
  assign buf_req_q_o     = q_q;
  assign seg_ready_o     = (state_q == StSeg) || (state_q == StSkip);

  assign buf_commit_o    = (done_issue && taken_q) || (done_skip && !seg_i.err);
  assign buf_commit_q_o  = q_q;
  assign buf_rewind_q_o  = q_q;
  always_comb begin
    buf_rewind_o = 1'b0;
    if (state_q == StDec && !seg_err_q && !tail_q) begin
      buf_rewind_o = seg_none_q || (!issue && seg_last_q && (seg_fits_q || too_small));
    end else if (state_q == StSkip) begin
      buf_rewind_o = !pass2_q && seg_valid_i && seg_i.last && !seg_i.err;
    end
  end

  assign patch_valid_o       = patch_q;
  assign patch_ptr_o         = ptr_q;
  assign patch_num_buffers_o = 16'(bufs_q);

  assign wr_cmd_valid_o = (issue || close_cmd) && tok_wr_ready;
  assign wr_cmd_o       = close_cmd ? close_wr
                                    : '{addr: seg_addr_q, len: {2'b00, put_len}, ptr: ptr_q};

  // ---------------------------------------------------------------- tokens
  wire dropping = (state_q == StDrop);
  wire wr_taken = wr_cmd_valid_o && wr_cmd_ready_i;
  assign tok_wr_valid = wr_taken || dropping || close_tok;
  always_comb begin
    tok_wr = '{
      cmd: !dropping, used: (kind_q == LroPass) && !dropping && (seg_last_q || seg_fits_q),
      publish: seg_fits_q, frame_end: dropping || seg_fits_q, drop: dropping, q: q_q,
      scratch: 1'b0, id: seg_id_q, len: buf_len_q + 17'(put_len), frame_len: len_q
    };
    if (close_cmd || close_tok) begin
      tok_wr.cmd       = close_cmd;
      tok_wr.used      = close_tok;
      tok_wr.publish   = close_publish;
      tok_wr.frame_end = 1'b0;
      tok_wr.scratch   = close_cmd && close_last;
      tok_wr.q         = unit_head.q;
      tok_wr.id        = {5'd0, close_buffer.id};
      tok_wr.len       = close_buffer.len;
    end
  end

  logic tokens_quiet;
  // On a wide card all entries of a unit wait behind its writes while the next frame begins.
  localparam int unsigned Tokens = (DataW == 64) ? 16 : 64;
  rx_tokens #(.Tokens(Tokens)) u_tokens (
    .clk_i, .rst_ni, .fn_rst_i,
    .valid_i  (tok_wr_valid),
    .ready_o  (tok_wr_ready),
    .token_i  (tok_wr),
    .taken_i  (wr_taken),
    .wr_done_i,
    .drain_o  (drain),
    .done_o   (all_done),
    .quiet_o  (tokens_quiet),
    .used_valid_o, .used_ready_i, .used_o, .release_valid_o, .release_len_o,
    .scratch_done_o(scratch_done), .event_o
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      drop_nobuf_o <= 1'b0;
      drop_other_o <= 1'b0;
    end else begin
      drop_nobuf_o <= done_drop && !other_q && !fn_rst_i;
      drop_other_o <= done_drop && other_q && !fn_rst_i;
    end
  end

  wire quiet = tokens_quiet && !drop_nobuf_o && !drop_other_o;
  assign idle_o = quiet && ((state_q == StIdle) || (state_q == StWait && pause_i)) &&
                  !close_wants && !wants_q && ((pause_i && !may_q) || !op_valid_i) && !drain;
  assign stalled_o = quiet && (state_q == StWait) && lossless_i && !avail_q && !close_wants &&
                     !wants_q;

  // Only what a frame can be long, and the fraction of the scaled hash.
  logic unused;
  assign unused = ^{segment_q, unit_head, unit_end, op_i.latest, seg_i.marker};

  `FERRONIC_ASSERT(CommitXorRewind, !(buf_commit_o && buf_rewind_o), clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(ReqStable, buf_req_valid_o, buf_req_ready_i || fn_rst_i, buf_req_q_o,
                          clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(CmdStable, wr_cmd_valid_o, wr_cmd_ready_i || fn_rst_i, wr_cmd_o,
                          clk_i, rst_ni)
endmodule

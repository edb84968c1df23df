// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Writes received frames into the buffers of their queue.
//
// A buffer of one segment that holds header and frame is written at once. Otherwise pass 1 walks
// buffers and counts until the frame fits, gives them back, num_buffers is patched into the header,
// and pass 2 walks them again and writes. A token follows each command, so that a used entry goes
// out only after the write that filled its buffer is done, and the slot is freed after the last.
//
// Latency: two cycles from frame to request, one from segment to command. Throughput: three cycles
// a frame of one segment, and the walker's latency; a command waits while the one before is
// written.
//
// Invariants: commands and tokens with `cmd` are in the same order; used entries of a frame leave
// in the order of its buffers, `publish` on the last one only; slots are freed in order.
`include "ferronic_assert.svh"
module rx_writer
  import ferronic_pkg::*;
#(
  parameter int unsigned RxWaitCycles = 12500,
  parameter int unsigned MaxBuffers = 64  // of one frame: what the walker can give back
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         fn_rst_i,
  input  logic         pause_i,
  output logic         idle_o,
  output logic         stalled_o,

  input  logic [6:0]   pairs_in_use_i,
  input  logic         mrg_rxbuf_i,
  input  logic         driver_ok_i,
  input  logic         lossless_i,

  input  logic         frame_valid_i,
  output logic         frame_ready_o,
  input  rx_frame_t    frame_i,
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

  localparam int unsigned Tokens = 16;
  localparam int unsigned CntW = $clog2(Tokens) + 1;
  localparam int unsigned WaitW = $clog2(RxWaitCycles + 1);
  localparam int unsigned BufW = $clog2(MaxBuffers + 1);

  // Eight bits that all depend on about half of the hash: CRC-8, polynomial 0x07, and eight zeros
  // behind the hash, so that its last bits reach all of them too.
  function automatic logic [7:0] mix(logic [15:0] hash);
    logic [7:0] crc;
    crc = 8'h00;
    for (int i = 15; i >= -8; i--) begin
      crc = {crc[6:0], 1'b0} ^ ((crc[7] ^ ((i >= 0) && hash[i & 15])) ? 8'h07 : 8'h00);
    end
    return crc;
  endfunction

  typedef enum logic [3:0] {
    StIdle  = 4'd0,
    StReq   = 4'd1, // ask for a buffer
    StSeg   = 4'd2, // wait for a segment
    StDec   = 4'd3, // use it
    StSkip  = 4'd4, // segments of this buffer that are not needed
    StPatch = 4'd5, // num_buffers into the header
    StWait  = 4'd6, // no buffer: wait, then ask again from the first
    StDrop  = 4'd7  // hand a token without command behind the frame
  } state_e;

  typedef struct packed {
    logic        cmd;       // wait for a write to be done
    logic        used;      // then this used entry
    logic        publish;
    logic        frame_end; // and the frame is over
    logic        drop;
    qid_t        q;
    logic [15:0] id;
    logic [13:0] len;       // used length
    logic [13:0] frame_len;
  } token_t;

  // ---------------------------------------------------------------- next frame, steered
  logic        pre_valid_q, pre_take;
  logic [15:0] pre_ptr_q;
  logic [13:0] pre_len_q;
  logic [7:0]  pre_mix_q;

  assign frame_ready_o = !pre_valid_q || pre_take;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) pre_valid_q <= 1'b0;
    else if (fn_rst_i) pre_valid_q <= 1'b0;
    else if (frame_ready_o) pre_valid_q <= frame_valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (frame_ready_o) begin
      pre_ptr_q <= frame_i.ptr;
      pre_len_q <= frame_i.len[13:0];
      pre_mix_q <= mix(frame_i.hash);
    end
  end

  // ---------------------------------------------------------------- this frame
  state_e      state_q;
  qid_t        q_q;
  logic [7:0]  mix_q;
  logic [15:0] ptr_q;      // slot; in pass 2 the next byte to write
  logic [13:0] len_q;      // bytes of the frame
  logic [13:0] need_q;     // bytes without a buffer so far
  logic [13:0] buf_len_q;  // bytes in this buffer so far
  logic [BufW-1:0] bufs_q; // buffers counted in pass 1
  logic        first_q;    // the next segment is the first of the first buffer
  logic        pass2_q;
  logic        written_q;  // a command of this frame was issued
  logic        other_q;    // cause of a drop

  // The segment under decision.
  logic        seg_none_q, seg_off_q, seg_err_q, seg_last_q, seg_fits_q;
  logic [15:0] seg_id_q;
  logic [63:0] seg_addr_q;
  logic [13:0] seg_len_q;
  logic        req_ok_q;   // the driver was ready when the buffer was asked for

  logic        tok_wr_valid, tok_wr_ready, tok_valid, tok_pop;
  token_t      tok_wr, tok;

  logic        event_valid_q, event_drop_q;
  qid_t        event_q_q;
  logic [13:0] event_len_q;

  // Writes under way; what is still out after a function reset is waited for.
  logic [CntW-1:0] out_q, done_q;
  logic            drain_q;
  wire             cmd_taken = wr_cmd_valid_o && wr_cmd_ready_i;

  // Waiting for buffers.
  logic [4:0]       retry_q;
  logic             avail_q;   // buffers came since the walker was asked
  logic [WaitW-1:0] wait_q;
  logic             waiting_q, expired_q;

  wire ok = !seg_err_q && !seg_none_q;
  wire issue = (state_q == StDec) && ok && (pass2_q || (first_q && seg_last_q && seg_fits_q));
  wire [13:0] put_len = seg_fits_q ? need_q : seg_len_q;
  wire may_begin = pre_valid_q && !pause_i && !drain_q;

  // The frame is over for this machine.
  wire done_issue = cmd_taken && seg_fits_q && seg_last_q;
  wire done_skip  = (state_q == StSkip) && pass2_q && seg_valid_i && (seg_i.last || seg_i.err);
  wire done_drop  = (state_q == StDrop) && tok_wr_ready;
  wire load = may_begin && ((state_q == StIdle) || done_issue || done_skip || done_drop);
  assign pre_take = load;

  // Frames that nobody will ever take are dropped at once, unless the wire may wait for the driver.
  // In a pause a queue may be off for a while, and until the driver was there when it was asked.
  wire give_up = !pause_i && ((seg_off_q && (!lossless_i || req_ok_q)) ||
                              (expired_q && !lossless_i));
  wire too_small = seg_last_q && !seg_fits_q &&
                   (!mrg_rxbuf_i || bufs_q == BufW'(MaxBuffers - 1));

  wire [7:0]  mix_now = (state_q == StWait) ? mix_q : pre_mix_q;
  wire [14:0] scaled = 15'(mix_now) * 15'(pairs_in_use_i);
  wire [5:0]  pair = scaled[13:8];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
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
    end else if (fn_rst_i) begin
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
    end else begin
      if (waiting_q && !pause_i && !expired_q) begin
        wait_q    <= wait_q + 1'b1;
        expired_q <= wait_q == WaitW'(RxWaitCycles - 1);
      end
      avail_q <= buf_avail_i || (avail_q && !(state_q == StReq && buf_req_ready_i));
      unique case (state_q)
        StReq: if (buf_req_ready_i) state_q <= StSeg;
        StSeg: if (seg_valid_i) state_q <= StDec;
        StDec: begin
          if (!ok) begin
            // Once something is written the buffers that pass 1 has seen must be there.
            other_q <= seg_err_q || written_q;
            if (seg_err_q || written_q || give_up) state_q <= StDrop;
            else state_q <= StWait;
            pass2_q   <= 1'b0;
            waiting_q <= 1'b1;
            retry_q   <= '0;
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
              state_q <= StDrop;
            end else begin
              state_q <= seg_last_q ? StReq : StSeg;
            end
          end
        end
        StSkip: begin
          if (seg_valid_i && !pass2_q) begin
            other_q <= seg_i.err;
            if (seg_i.err) begin
              state_q <= StDrop;
            end else if (seg_i.last) begin
              pass2_q <= 1'b1;
              state_q <= StPatch;
            end
          end
        end
        StPatch: if (patch_ready_i || !patch_valid_o) state_q <= StReq;
        StWait: begin
          first_q <= 1'b1;
          retry_q <= retry_q + 1'b1;
          if (!pause_i && (buf_avail_i || avail_q || retry_q == '1)) state_q <= StReq;
        end
        default: ; // StIdle, StDrop: below
      endcase
      if (done_issue || done_skip || done_drop || load) begin
        state_q   <= load ? StReq : StIdle;
        first_q   <= 1'b1;
        pass2_q   <= 1'b0;
        written_q <= 1'b0;
        waiting_q <= 1'b0;
        expired_q <= 1'b0;
        wait_q    <= '0;
      end
    end
  end

  // `ptr_q` goes back to the slot by itself: only pass 2 moves it.
  always_ff @(posedge clk_i) begin
    if (load) begin
      ptr_q  <= pre_ptr_q;
      len_q  <= pre_len_q;
      mix_q  <= pre_mix_q;
    end else if (cmd_taken) begin
      ptr_q  <= ptr_q + 16'(put_len);
    end
    if (load || state_q == StWait) q_q <= {pair, 1'b0};

    if (load) need_q <= pre_len_q + 14'(VirtioHdrBytes);
    else if (state_q == StWait || state_q == StPatch) need_q <= len_q + 14'(VirtioHdrBytes);
    else if (state_q == StDec && ok && !seg_fits_q && (!issue || cmd_taken)) begin
      need_q <= need_q - seg_len_q;
    end

    if (state_q == StReq) req_ok_q <= driver_ok_i;
    if (state_q == StReq) buf_len_q <= '0;
    else if (cmd_taken) buf_len_q <= buf_len_q + put_len;

    if (load || state_q == StWait) bufs_q <= '0;
    else if (state_q == StDec && !issue && (seg_last_q || seg_fits_q)) bufs_q <= bufs_q + 1'b1;

    if (state_q == StSeg && seg_valid_i) begin
      seg_none_q <= seg_i.none;
      seg_off_q  <= seg_i.off;
      seg_err_q  <= seg_i.err;
      seg_last_q <= seg_i.last;
      seg_id_q   <= seg_i.id;
      seg_addr_q <= seg_i.addr;
      seg_len_q  <= seg_i.len[13:0];
      seg_fits_q <= (|seg_i.len[31:14]) || (seg_i.len[13:0] >= need_q);
    end
  end

  assign buf_req_valid_o = (state_q == StReq);
  assign buf_req_q_o     = q_q;
  assign seg_ready_o     = (state_q == StSeg) || (state_q == StSkip);

  assign buf_commit_o    = done_issue || (done_skip && !seg_i.err);
  assign buf_commit_q_o  = q_q;
  assign buf_rewind_q_o  = q_q;
  always_comb begin
    buf_rewind_o = 1'b0;
    if (state_q == StDec && !seg_err_q) begin
      buf_rewind_o = seg_none_q || (!issue && seg_last_q && (seg_fits_q || too_small));
    end else if (state_q == StSkip) begin
      buf_rewind_o = !pass2_q && seg_valid_i && seg_i.last && !seg_i.err;
    end
  end

  assign patch_valid_o       = (state_q == StPatch) && (bufs_q != BufW'(1));
  assign patch_ptr_o         = ptr_q;
  assign patch_num_buffers_o = 16'(bufs_q);

  assign wr_cmd_valid_o = issue && tok_wr_ready;
  assign wr_cmd_o.addr  = seg_addr_q;
  assign wr_cmd_o.len   = {2'b00, put_len};
  assign wr_cmd_o.ptr   = ptr_q;

  // ---------------------------------------------------------------- tokens
  assign tok_wr_valid     = cmd_taken || (state_q == StDrop);
  assign tok_wr.cmd       = (state_q != StDrop);
  assign tok_wr.used      = (state_q != StDrop) && (seg_last_q || seg_fits_q);
  assign tok_wr.publish   = seg_fits_q;
  assign tok_wr.frame_end = (state_q == StDrop) || seg_fits_q;
  assign tok_wr.drop      = (state_q == StDrop);
  assign tok_wr.q         = q_q;
  assign tok_wr.id        = seg_id_q;
  assign tok_wr.len       = buf_len_q + put_len;
  assign tok_wr.frame_len = len_q;

  logic [CntW-1:0] tok_level;
  prim_fifo #(.Width($bits(token_t)), .Depth(Tokens)) u_tokens (
    .clk_i, .rst_ni,
    .clr_i     (fn_rst_i),
    .wr_valid_i(tok_wr_valid),
    .wr_ready_o(tok_wr_ready),
    .wr_data_i (tok_wr),
    .rd_valid_o(tok_valid),
    .rd_ready_i(tok_pop),
    .rd_data_o (tok),
    .level_o   (tok_level)
  );

  wire tok_due = tok_valid && (!tok.cmd || done_q != '0);
  assign used_valid_o   = tok_due && tok.used;
  assign used_o.q       = tok.q;
  assign used_o.publish = tok.publish;
  assign used_o.id      = tok.id;
  assign used_o.len     = {18'd0, tok.len};
  assign tok_pop        = tok_due && (!tok.used || used_ready_i);

  assign release_valid_o = tok_pop && tok.frame_end;
  assign release_len_o   = {2'b00, tok.frame_len};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_q   <= '0;
      done_q  <= '0;
      drain_q <= 1'b0;
    end else begin
      out_q <= out_q + CntW'(cmd_taken) - CntW'(wr_done_i);
      if (fn_rst_i) begin
        drain_q <= 1'b1;
        done_q  <= '0;
      end else begin
        if (out_q == '0) drain_q <= 1'b0;
        if (!drain_q) done_q <= done_q + CntW'(wr_done_i) - CntW'(tok_pop && tok.cmd);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      event_valid_q <= 1'b0;
      drop_nobuf_o  <= 1'b0;
      drop_other_o  <= 1'b0;
    end else begin
      event_valid_q <= release_valid_o && !fn_rst_i;
      drop_nobuf_o  <= done_drop && !other_q && !fn_rst_i;
      drop_other_o  <= done_drop && other_q && !fn_rst_i;
    end
  end

  always_ff @(posedge clk_i) begin
    event_q_q    <= tok.q;
    event_drop_q <= tok.drop;
    event_len_q  <= tok.frame_len;
  end

  assign event_o.valid = event_valid_q;
  assign event_o.q     = event_q_q;
  assign event_o.drop  = event_drop_q;
  assign event_o.bytes = {2'b00, event_len_q};

  wire quiet = !tok_valid && (out_q == '0) && !event_valid_q && !drop_nobuf_o && !drop_other_o;
  assign idle_o = quiet && ((state_q == StIdle) || (state_q == StWait && pause_i)) &&
                  (pause_i || (!pre_valid_q && !frame_valid_i)) && !drain_q;
  assign stalled_o = quiet && (state_q == StWait) && lossless_i && !avail_q;

  // Only what a frame can be long, and the fraction of the scaled hash.
  logic unused;
  assign unused = ^{frame_i.len[15:14], scaled[14], scaled[7:0], tok_level};

  `FERRONIC_ASSERT(DonesAreExpected, !wr_done_i || out_q != '0, clk_i, rst_ni)
  `FERRONIC_ASSERT(CommitXorRewind, !(buf_commit_o && buf_rewind_o), clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(ReqStable, buf_req_valid_o, buf_req_ready_i || fn_rst_i, buf_req_q_o,
                          clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(CmdStable, wr_cmd_valid_o, wr_cmd_ready_i || fn_rst_i, wr_cmd_o,
                          clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(UsedStable, used_valid_o, used_ready_i || fn_rst_i, used_o,
                          clk_i, rst_ni)
endmodule

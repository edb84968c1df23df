// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Takes buffers of the transmit queues and reads them into the frame RAM: the segments of a buffer
// one behind the other, from a word on. Space is reserved before a read is issued. When the last
// read of a frame is issued its buffer is committed and a record goes to tx_complete.
//
// Each buffer is one frame. A frame that is too long is read no further; it and a frame with a
// broken chain get their record when no read is out any more, so that completions and records stay
// in step.
//
// Throughput: two cycles a frame and two a segment, and the walker's latency. While one queue has
// work it is asked again without a return to the list.
//
// Invariant: words of frames that were not freed + `free_q` = words of the RAM.
`include "ferronic_assert.svh"
module tx_reader
  import ferronic_pkg::*;
  import tx_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned RamBytes = 16384,
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned LaneW = $clog2(Lanes),
  localparam int unsigned Words = RamBytes / Lanes,
  localparam int unsigned AddrW = $clog2(Words)
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         fn_rst_i,
  input  logic         pause_i,
  output logic         idle_o,
  output logic         drain_o,   // reads from before a function reset are still out

  input  logic         next_valid_i,
  input  qid_t         next_q_i,
  output logic         next_take_o,
  output logic         ret_valid_o,
  input  logic         ret_ready_i,
  output qid_t         ret_q_o,
  output logic         ret_off_o,

  output logic         buf_req_valid_o,
  input  logic         buf_req_ready_i,
  output qid_t         buf_req_q_o,
  input  logic         seg_valid_i,
  output logic         seg_ready_o,
  input  vq_seg_t      seg_i,
  output logic         buf_commit_o,
  output qid_t         buf_commit_q_o,

  output logic         rd_req_valid_o,
  input  logic         rd_req_ready_i,
  output dma_rd_req_t  rd_req_o,
  input  logic         rd_done_i,

  output logic         rec_valid_o,
  input  logic         rec_ready_i,
  output tx_record_t   rec_o,
  input  logic         free_valid_i,
  input  logic [AddrW:0] free_words_i
);
  localparam int unsigned MaxBytes = MaxFrameBytes + VirtioHdrBytes;
  localparam int unsigned MinBytes = MinFrameBytes + VirtioHdrBytes;

  if (RamBytes > 65536 || RamBytes < MaxBytes + Lanes) begin : g_bad_ram
    $error("%m: RamBytes (%0d) must hold the largest frame and be at most 65536", RamBytes);
  end

  typedef logic [AddrW-1:0] word_t;
  typedef logic [AddrW:0]   count_t;

  typedef enum logic [2:0] {
    StIdle  = 3'd0,
    StReq   = 3'd1, // ask for a buffer
    StSeg   = 3'd2, // wait for a segment
    StDec   = 3'd3, // use it
    StSkip  = 3'd4, // segments that are not read
    StDrain = 3'd5  // wait until no read is out, then hand over the record
  } state_e;

  state_e      state_q;
  qid_t        q_q;
  word_t       base_q;     // first word of the slot
  count_t      free_q;     // free words from `base_q` on
  logic [13:0] total_q;    // bytes of this frame so far
  logic        take_q;     // the frame before took `take_words_q`
  count_t      take_words_q;
  logic        first_q;
  tx_kind_e    kind_q;     // in StSkip and StDrain

  logic        seg_none_q, seg_off_q, seg_err_q, seg_last_q, seg_huge_q;
  logic [15:0] seg_id_q;
  logic [63:0] seg_addr_q;
  logic [13:0] seg_len_q;
  logic [14:0] sum_q;      // `total_q` with this segment

  logic        ret_valid_q, ret_off_q;
  qid_t        ret_q_q;
  logic [7:0]  out_q;      // reads that are out
  logic        drain_q;

  function automatic count_t words_of(logic [13:0] len);
    return count_t'((15'(len) + 15'(Lanes - 1)) >> LaneW);
  endfunction

  wire          too_long = seg_huge_q || (sum_q > 15'(MaxBytes));
  wire          issue = (state_q == StDec) && !seg_none_q && !seg_err_q && !too_long;
  wire count_t  words = words_of((state_q == StDrain) ? total_q : sum_q[13:0]);
  wire          space = {3'b000, sum_q} <= (18'(free_q) << LaneW);
  wire          ret_free = !ret_valid_q;
  wire          read_taken = rd_req_valid_o && rd_req_ready_i;

  // Ends of this machine's part of a frame, each with the queue's return possible.
  wire          end_read = read_taken && seg_last_q;
  wire          end_none = (state_q == StDec) && seg_none_q && ret_free;
  wire          end_drain = (state_q == StDrain) && (out_q == '0) && ret_free && rec_ready_i;
  wire          ends = end_read || end_none || end_drain;
  wire          err_end = end_drain && (kind_q == TxOther);
  wire          other = next_valid_i && !pause_i;
  // The same queue again, if none else waits: the walker says when it is empty.
  wire          again = !next_valid_i && !pause_i && !end_none && !err_end;

  assign next_take_o = other && !drain_q && ((state_q == StIdle) || ends);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= StIdle;
      base_q      <= '0;
      free_q      <= count_t'(Words);
      first_q     <= 1'b1;
      take_q      <= 1'b0;
      ret_valid_q <= 1'b0;
    end else if (fn_rst_i) begin
      state_q     <= StIdle;
      base_q      <= '0;
      free_q      <= count_t'(Words);
      first_q     <= 1'b1;
      take_q      <= 1'b0;
      ret_valid_q <= 1'b0;
    end else begin
      unique case (state_q)
        StReq: if (buf_req_ready_i) state_q <= StSeg;
        StSeg: if (seg_valid_i) state_q <= StDec;
        StDec: begin
          if (seg_err_q) state_q <= StDrain;
          else if (!seg_none_q && too_long) state_q <= seg_last_q ? StDrain : StSkip;
          else if (read_taken) state_q <= StSeg;
        end
        StSkip: if (seg_valid_i && (seg_i.last || seg_i.err)) state_q <= StDrain;
        default: ; // StIdle, StDrain: below
      endcase
      if (read_taken) first_q <= 1'b0;
      if (ret_ready_i) ret_valid_q <= 1'b0;
      if (ends) begin
        first_q     <= 1'b1;
        ret_valid_q <= !again;
        state_q     <= again ? StReq : StIdle;
      end
      if (next_take_o) state_q <= StReq;

      // A cycle late: the next read of a frame is at least three cycles away.
      take_q <= end_read || end_drain;
      free_q <= free_q + (free_valid_i ? free_words_i : '0) - (take_q ? take_words_q : '0);
      if (take_q) base_q <= base_q + word_t'(take_words_q);
    end
  end

  always_ff @(posedge clk_i) begin
    take_words_q <= words;
    if (next_take_o) q_q <= next_q_i;

    if (state_q == StReq) total_q <= '0;
    else if (read_taken) total_q <= sum_q[13:0];

    if (state_q == StSeg && seg_valid_i) begin
      seg_none_q <= seg_i.none;
      seg_off_q  <= seg_i.off;
      seg_err_q  <= seg_i.err;
      seg_last_q <= seg_i.last;
      seg_id_q   <= seg_i.id;
      seg_addr_q <= seg_i.addr;
      seg_len_q  <= seg_i.len[13:0];
      seg_huge_q <= |seg_i.len[31:14];
      sum_q      <= 15'(total_q) + 15'(seg_i.len[13:0]);
    end

    if (state_q == StDec) kind_q <= seg_err_q ? TxOther : TxLong;
    else if (state_q == StSkip && seg_valid_i && seg_i.err) kind_q <= TxOther;

    if (ends) begin
      ret_q_q   <= q_q;
      // A queue that is off in a pause may come back without a new pulse.
      ret_off_q <= err_end || (end_none && seg_off_q && !pause_i);
    end
  end

  assign buf_req_valid_o = (state_q == StReq);
  assign buf_req_q_o     = q_q;
  assign seg_ready_o     = (state_q == StSeg) || (state_q == StSkip);
  assign buf_commit_o    = end_read || (end_drain && !err_end);
  assign buf_commit_q_o  = q_q;
  assign ret_valid_o     = ret_valid_q;
  assign ret_q_o         = ret_q_q;
  assign ret_off_o       = ret_off_q;

  assign rd_req_valid_o = issue && space && (!seg_last_q || (rec_ready_i && ret_free));
  assign rd_req_o.addr  = seg_addr_q;
  assign rd_req_o.len   = {2'b00, seg_len_q};
  assign rd_req_o.ptr   = (16'(base_q) << LaneW) + 16'(total_q);
  always_comb begin
    rd_req_o.cookie              = '0;
    rd_req_o.cookie[CookieFirst] = first_q;
    rd_req_o.cookie[CookieLast]  = seg_last_q;
  end

  assign rec_valid_o = end_read || end_drain;
  assign rec_o.reads = end_read;
  assign rec_o.kind  = end_drain ? kind_q : ((sum_q < 15'(MinBytes)) ? TxShort : TxOk);
  assign rec_o.q     = q_q;
  assign rec_o.id    = seg_id_q;
  assign rec_o.len   = end_drain ? total_q : sum_q[13:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_q   <= '0;
      drain_q <= 1'b0;
    end else begin
      out_q <= out_q + 8'(read_taken) - 8'(rd_done_i);
      if (fn_rst_i) drain_q <= 1'b1;
      else if (out_q == '0) drain_q <= 1'b0;
    end
  end
  assign drain_o = drain_q;
  assign idle_o  = (state_q == StIdle) && !ret_valid_q && (out_q == '0) && !drain_q;

  `FERRONIC_ASSERT(FreeInRange, free_q <= count_t'(Words), clk_i, rst_ni)
  `FERRONIC_ASSERT(DonesAreExpected, !rd_done_i || out_q != '0, clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(ReqStable, buf_req_valid_o, buf_req_ready_i || fn_rst_i, buf_req_q_o,
                          clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(ReadStable, rd_req_valid_o, rd_req_ready_i || fn_rst_i, rd_req_o,
                          clk_i, rst_ni)
endmodule

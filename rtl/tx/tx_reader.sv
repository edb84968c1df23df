// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Takes buffers of the transmit queues and reads them into the landing RAM, a ring: the segments of
// a buffer one behind the other, from a word on. Reads are of at most Chunk bytes, and space is
// reserved for each before it is issued, so that a buffer may be larger than the RAM: it is used up
// while it arrives. Each read gets a record; with that of a frame's last read its buffer is
// committed.
//
// A frame that is too long is read no further; it and a frame with a broken chain end with a record
// without a read.
//
// Throughput: two cycles a frame and two a segment, and the walker's latency; two cycles for each
// further chunk. While a queue may go on it is asked again without a return to the list.
//
// Invariant: words of frames that were not freed + `free_q` = words of the RAM.
`include "ferronic_assert.svh"
module tx_reader
  import ferronic_pkg::*;
  import tx_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned RamBytes = 16384,
  parameter int unsigned Chunk = 2048,
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

  output logic         seek_o,
  input  logic         next_valid_i,
  input  qid_t         next_q_i,
  output logic         next_take_o,
  output tx_len_t      cost_o,    // of the frame, once its last segment is there
  input  logic         keep_i,
  output logic         spent_o,   // a frame of so many bytes was read
  output tx_len_t      spent_bytes_o,
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
  localparam int unsigned MinBytes = MinFrameBytes + VirtioHdrBytes;
  localparam int unsigned ChunkW = $clog2(Chunk);

  if (MaxGsoBytes != 'h10021 || TxLenW != 17) begin : g_bad_limit
    $error("%m: too_long is written for MaxGsoBytes = 65569, not %0d", MaxGsoBytes);
  end
  // A whole frame must be able to wait behind a chunk that does not fit.
  if (RamBytes > 65536 || RamBytes < MaxPlainBytes + Chunk + 2 * Lanes) begin : g_bad_ram
    $error("%m: RamBytes (%0d) must hold the largest frame and a chunk, and be at most 65536",
           RamBytes);
  end
  if (Chunk != (1 << ChunkW) || Chunk < 512 || Chunk > 4096) begin : g_bad_chunk
    $error("%m: Chunk (%0d) must be a power of two, 512 to 4096", Chunk);
  end

  typedef logic [AddrW-1:0] word_t;
  typedef logic [AddrW:0]   count_t;
  typedef logic [ChunkW:0]  chunk_t;

  typedef enum logic [2:0] {
    StIdle  = 3'd0,
    StReq   = 3'd1, // ask for a buffer
    StSeg   = 3'd2, // wait for a segment
    StRead  = 3'd3, // read a chunk of it
    StNext  = 3'd4, // the next chunk
    StSkip  = 3'd5, // segments that are not read
    StClose = 3'd6  // hand over the record of a frame that is not read
  } state_e;

  state_e      state_q;
  qid_t        q_q;
  word_t       base_q;     // first word of the frame
  count_t      free_q;     // free words of the RAM
  tx_len_t     total_q;    // bytes of this frame so far
  logic        take_q;     // a read or an end of frame a cycle ago
  logic        end_q;      // the end
  tx_len_t     before_q, after_q;
  tx_kind_e    kind_q;     // in StSkip and StClose

  logic        seg_none_q, seg_off_q, seg_err_q, seg_last_q;
  logic [15:0] seg_id_q;
  logic        marker_q;
  logic [63:0] seg_addr_q;
  tx_len_t     seg_left_q; // bytes of the segment behind this chunk
  chunk_t      chunk_q;    // bytes to read now
  logic [TxLenW:0] sum_q;  // `total_q` with them
  logic [TxLenW:0] all_q;  // with the whole segment

  logic        ret_valid_q, ret_off_q;
  qid_t        ret_q_q;
  logic        commit_q;   // a cycle late: with the request for the next buffer
  qid_t        commit_of_q;
  logic [7:0]  out_q;      // reads that are out
  logic        drain_q;

  function automatic tx_len_t words_of(tx_len_t len);
    return (len >> LaneW) + tx_len_t'(|len[LaneW-1:0]);
  endfunction

  // The last chunk may end anywhere, others where the host's address is a multiple of Chunk.
  function automatic chunk_t chunk_of(logic [ChunkW-1:0] addr, tx_len_t len);
    return (len > tx_len_t'(Chunk)) ? chunk_t'(Chunk) - {1'b0, addr} : chunk_t'(len);
  endfunction

  chunk_t  seg_chunk, next_chunk;
  assign seg_chunk  = chunk_of(seg_i.addr[ChunkW-1:0], seg_i.len[TxLenW-1:0]);
  assign next_chunk = chunk_of('0, seg_left_q);

  // More than MaxGsoBytes, 10021 in hex, without a carry chain: this decides late in the cycle.
  // What is too long to be sent whole, tx_offload drops.
  wire     too_long = all_q[17] || (all_q[16] && (|all_q[15:6] || (all_q[5] && |all_q[4:1])));
  wire     more = (seg_left_q != '0);
  wire     ends_frame = seg_last_q && !more;
  wire     space = free_q > count_t'(chunk_q >> LaneW);
  wire     issue = (state_q == StRead) && !seg_none_q && !seg_err_q && !too_long;
  wire     ret_free = !ret_valid_q;
  logic    req_valid, req_ready;
  wire     read_taken = req_valid && req_ready;

  // Ends of this machine's part of a frame, each with the queue's return possible.
  wire     end_read = read_taken && ends_frame;
  wire     end_none = (state_q == StRead) && seg_none_q && ret_free;
  wire     end_close = (state_q == StClose) && ret_free && rec_ready_i;
  wire     ends = end_read || end_none || end_close;
  wire     err_end = end_close && (kind_q == TxOther);
  // The same queue again while it may: the walker says when it is empty.
  wire     again = keep_i && !pause_i && !end_none && !err_end;

  assign seek_o        = (state_q == StIdle) && !ret_valid_q && !pause_i && !drain_q;
  assign next_take_o   = seek_o && next_valid_i;
  assign cost_o        = all_q[TxLenW-1:0];
  assign spent_o       = ends && !end_none;
  assign spent_bytes_o = rec_o.len;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= StIdle;
      base_q      <= '0;
      free_q      <= count_t'(Words);
      take_q      <= 1'b0;
      end_q       <= 1'b0;
      ret_valid_q <= 1'b0;
    end else if (fn_rst_i) begin
      state_q     <= StIdle;
      base_q      <= '0;
      free_q      <= count_t'(Words);
      take_q      <= 1'b0;
      end_q       <= 1'b0;
      ret_valid_q <= 1'b0;
    end else begin
      unique case (state_q)
        StReq: if (buf_req_ready_i) state_q <= StSeg;
        StSeg: if (seg_valid_i) state_q <= StRead;
        StRead: begin
          if (seg_err_q) state_q <= StClose;
          else if (!seg_none_q && too_long) state_q <= seg_last_q ? StClose : StSkip;
          else if (read_taken) state_q <= more ? StNext : StSeg;
        end
        StNext: state_q <= StRead;
        StSkip: if (seg_valid_i && (seg_i.last || seg_i.err)) state_q <= StClose;
        default: ; // StIdle, StClose: below
      endcase
      if (ret_ready_i) ret_valid_q <= 1'b0;
      if (ends) begin
        ret_valid_q <= !again;
        state_q     <= again ? StReq : StIdle;
      end
      if (next_take_o) state_q <= StReq;

      // A cycle late: the next read is at least two cycles away.
      take_q <= read_taken;
      free_q <= free_q + (free_valid_i ? free_words_i : '0) -
                (take_q ? count_t'(words_of(after_q) - words_of(before_q)) : '0);
      end_q  <= end_read || end_close;
      if (end_q) base_q <= base_q + word_t'(words_of(after_q));
    end
  end

  always_ff @(posedge clk_i) begin
    before_q <= total_q;
    after_q  <= (state_q == StClose) ? total_q : sum_q[TxLenW-1:0];
    if (next_take_o) q_q <= next_q_i;

    if (state_q == StReq) total_q <= '0;
    else if (read_taken) total_q <= sum_q[TxLenW-1:0];

    if (state_q == StSeg && seg_valid_i) begin
      seg_none_q <= seg_i.none;
      seg_off_q  <= seg_i.off;
      seg_err_q  <= seg_i.err;
      seg_last_q <= seg_i.last;
      seg_id_q   <= seg_i.id;
      marker_q   <= seg_i.marker;
      seg_addr_q <= seg_i.addr;
      seg_left_q <= seg_i.len[TxLenW-1:0] - tx_len_t'(seg_chunk);
      chunk_q    <= seg_chunk;
      sum_q      <= {1'b0, total_q} + (TxLenW + 1)'(seg_chunk);
      all_q      <= {1'b0, total_q} + {1'b0, seg_i.len[TxLenW-1:0]};
    end else if (state_q == StNext) begin
      seg_addr_q <= {seg_addr_q[63:ChunkW] + 1'b1, {ChunkW{1'b0}}};
      seg_left_q <= seg_left_q - tx_len_t'(next_chunk);
      chunk_q    <= next_chunk;
      sum_q      <= {1'b0, total_q} + (TxLenW + 1)'(next_chunk);
    end

    if (state_q == StRead) kind_q <= seg_err_q ? TxOther : TxLong;
    else if (state_q == StSkip && seg_valid_i && seg_i.err) kind_q <= TxOther;

    commit_q    <= (end_read || (end_close && !err_end)) && rst_ni && !fn_rst_i;
    commit_of_q <= q_q;
    if (ends) begin
      ret_q_q   <= q_q;
      // A queue that is off in a pause may come back without a new pulse.
      ret_off_q <= err_end || (end_none && seg_off_q && !pause_i);
    end
  end

  assign buf_req_valid_o = (state_q == StReq);
  assign buf_req_q_o     = q_q;
  assign seg_ready_o     = (state_q == StSeg) || (state_q == StSkip);
  assign buf_commit_o    = commit_q;
  assign buf_commit_q_o  = commit_of_q;
  assign ret_valid_o     = ret_valid_q;
  assign ret_q_o         = ret_q_q;
  assign ret_off_o       = ret_off_q;

  dma_rd_req_t req;
  assign req_valid  = issue && space && rec_ready_i && (!ends_frame || ret_free);
  assign req.addr   = seg_addr_q;
  assign req.len    = 16'(chunk_q);
  assign req.ptr    = (16'(base_q) << LaneW) + total_q[15:0];
  assign req.cookie = '0;
  // A function reset takes back what was not issued.
  prim_slice #(.Width($bits(dma_rd_req_t))) u_req (
    .clk_i, .rst_ni,
    .clr_i      (fn_rst_i),
    .in_valid_i (req_valid),
    .in_ready_o (req_ready),
    .in_data_i  (req),
    .out_valid_o(rd_req_valid_o),
    .out_ready_i(rd_req_ready_i),
    .out_data_o (rd_req_o)
  );

  assign rec_valid_o = read_taken || end_close;
  assign rec_o.reads = read_taken;
  assign rec_o.last  = ends_frame || end_close;
  assign rec_o.kind  = end_close ? kind_q :
                       (sum_q < (TxLenW + 1)'(MinBytes)) ? TxShort : TxOk;
  assign rec_o.q     = q_q;
  assign rec_o.id    = seg_id_q;
  assign rec_o.marker = marker_q;
  assign rec_o.len   = end_close ? total_q : sum_q[TxLenW-1:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_q   <= '0;
      drain_q <= 1'b0;
    end else begin
      out_q <= out_q + 8'(rd_req_valid_o && rd_req_ready_i) - 8'(rd_done_i);
      if (fn_rst_i) drain_q <= 1'b1;
      else if (out_q == '0) drain_q <= 1'b0;
    end
  end
  assign drain_o = drain_q;
  assign idle_o  = (state_q == StIdle) && !ret_valid_q && !rd_req_valid_o && (out_q == '0) &&
                   !drain_q;

  logic unused;
  assign unused = ^seg_i.len[31:TxLenW]; // the walker saturates lengths at 17 bits

  `FERRONIC_ASSERT(TooLong, too_long == (all_q > (TxLenW + 1)'(MaxGsoBytes)), clk_i, rst_ni)
  `FERRONIC_ASSERT(FreeInRange, free_q <= count_t'(Words), clk_i, rst_ni)
  `FERRONIC_ASSERT(DonesAreExpected, !rd_done_i || out_q != '0, clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(ReqStable, buf_req_valid_o, buf_req_ready_i || fn_rst_i, buf_req_q_o,
                          clk_i, rst_ni)
endmodule

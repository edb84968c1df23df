// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Puts frames and segments together: the first hdr_len bytes of a job come from the header RAM, the
// others from the landing RAM, whatever their alignment there. Or loads the header RAM.
//
// One beat a cycle, without a gap between jobs; three cycles from a read to its beat. Reads stop
// while tx_fifo has no room or needs its write port, and for a cycle when tx_offload reads. Beats
// that are on their way are never held up: tx_fifo has reserved room for them.
//
// Space is freed word by word behind the reads of payload, what remains with a job's last.
//
// Invariant: no word is freed before its last byte was read.
`include "ferronic_assert.svh"
module tx_stream
  import ferronic_pkg::*;
  import tx_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned RamBytes = 16384,
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned LaneW = $clog2(Lanes),
  localparam int unsigned BytesW = LaneW + 1,
  localparam int unsigned AddrW = $clog2(RamBytes / Lanes),
  localparam int unsigned HdrBeats = (TxHdrBytes * 8 + DataW - 1) / DataW,
  localparam int unsigned HdrBeatW = (HdrBeats > 1) ? $clog2(HdrBeats) : 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                fn_rst_i,
  output logic                idle_o,
  output logic                loading_o,
  output logic                hdr_busy_o,

  input  logic                job_valid_i,
  output logic                job_ready_o,
  input  tx_job_t             job_i,

  output logic                free_valid_o,
  output logic [AddrW:0]      free_words_o,

  // Landing RAM; somebody else reads while ram_taken_i.
  input  logic                ram_taken_i,
  output logic                ram_re_o,
  output logic [AddrW-1:0]    ram_raddr_o,
  output logic [Lanes-1:0]    ram_rinc_o,
  input  logic [DataW-1:0]    ram_rdata_i,

  // Header RAM.
  output logic                hdr_re_o,
  output logic [HdrBeatW-1:0] hdr_beat_o,
  input  logic [DataW-1:0]    hdr_data_i,
  output logic                load_o,
  output logic [HdrBeatW-1:0] load_beat_o,

  // tx_fifo: room is for frames and for beats; a beat that is taken comes three cycles later.
  input  logic                frame_room_i,
  output logic                frame_o,       // a frame of frame_len_o bytes begins
  output logic [13:0]         frame_len_o,
  input  logic                room_i,
  output logic                take_o,
  output logic                beat_valid_o,
  output tx_beat_t            beat_o,
  output logic [BytesW-1:0]   beat_bytes_o,
  output qid_t                beat_q_o,      // queue of its frame
  output logic [BytesW-1:0]   beat_skip_o,   // bytes before the first that is summed
  output logic [DataW-1:0]    beat_data_o
);
  // ---------------------------------------------------------------- the job
  logic                busy_q, empty_q, load_q, first_q, csum_q, udp_q, odd_q;
  logic [7:0]          hdr_left_q;
  logic [13:0]         left_q, to_sum_q, at_q;   // bytes to come, to come before the sum
  qid_t                q_q;
  logic [AddrW-1:0]    word_q;
  logic [LaneW-1:0]    off_q;
  logic [HdrBeatW-1:0] beat_q;
  logic [AddrW:0]      free_q;

  wire last  = (left_q <= 14'(Lanes));
  wire issue = busy_q && !empty_q && !ram_taken_i && (load_q || room_i);
  wire fin   = busy_q && (empty_q || (issue && last));
  // Beats behind the headers use up a word each.
  wire frees = issue && !last && (hdr_left_q == '0) && (free_q != '0);
  wire sends = !job_i.empty && !job_i.load;
  wire start = job_valid_i && job_ready_o;

  assign job_ready_o = (!busy_q || fin) && (frame_room_i || !sends);
  assign frame_o     = start && sends;
  assign frame_len_o = job_i.len;
  assign take_o      = issue && !load_q;
  assign ram_re_o    = issue;
  assign ram_raddr_o = word_q;
  for (genvar l = 0; l < int'(Lanes); l++) begin : g_inc
    assign ram_rinc_o[l] = ({1'b0, LaneW'(l)} < {1'b0, off_q});
  end

  function automatic logic [BytesW-1:0] at_most(logic [13:0] bytes);
    return (bytes >= 14'(Lanes)) ? BytesW'(Lanes) : BytesW'(bytes);
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      busy_q       <= 1'b0;
      free_valid_o <= 1'b0;
    end else begin
      if (start) busy_q <= 1'b1;
      else if (fin) busy_q <= 1'b0;
      free_valid_o <= fin || frees;
    end
  end
  always_ff @(posedge clk_i) begin
    free_words_o <= fin ? free_q : (AddrW + 1)'(1);
    if (start) begin
      q_q        <= job_i.q;
      empty_q    <= job_i.empty;
      load_q     <= job_i.load;
      first_q    <= 1'b1;
      csum_q     <= job_i.csum;
      udp_q      <= job_i.udp;
      odd_q      <= job_i.csum_start[0];
      hdr_left_q <= job_i.hdr_len;
      left_q     <= job_i.len;
      to_sum_q   <= job_i.csum_start;
      at_q       <= job_i.csum_at;
      word_q     <= job_i.ptr[LaneW +: AddrW];
      off_q      <= job_i.ptr[LaneW-1:0];
      beat_q     <= '0;
      free_q     <= (AddrW + 1)'(job_i.free);
    end else if (issue) begin
      if (frees) free_q <= free_q - 1'b1;
      first_q    <= 1'b0;
      hdr_left_q <= (hdr_left_q >= 8'(Lanes)) ? hdr_left_q - 8'(Lanes) : '0;
      left_q     <= left_q - 14'(Lanes);
      to_sum_q   <= (to_sum_q >= 14'(Lanes)) ? to_sum_q - 14'(Lanes) : '0;
      word_q     <= word_q + 1'b1;
      beat_q     <= beat_q + 1'b1;
    end
  end

  // ---------------------------------------------------------------- beats on their way
  typedef struct packed {
    logic                load;
    tx_beat_t            beat;
    qid_t                q;
    logic [BytesW-1:0]   bytes;
    logic [BytesW-1:0]   skip;
    logic [BytesW-1:0]   hdr;    // bytes from the header RAM
    logic [LaneW-1:0]    off;
    logic [HdrBeatW-1:0] index;
  } step_t;
  step_t            step0, step1_q, step2_q, step3_q;
  logic             valid1_q, valid2_q, valid3_q;
  logic [DataW-1:0] raw_q, hdr_q, rotated, data;

  assign step0 = '{load: load_q,
                   q: q_q,
                   beat: '{first: first_q, last: last, csum: csum_q, udp: udp_q, odd: odd_q,
                           at: at_q},
                   bytes: at_most(left_q), skip: at_most(to_sum_q),
                   hdr: at_most({6'd0, hdr_left_q}), off: off_q, index: beat_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      valid1_q <= 1'b0;
      valid2_q <= 1'b0;
      valid3_q <= 1'b0;
    end else begin
      valid1_q <= issue;
      valid2_q <= valid1_q;
      valid3_q <= valid2_q;
    end
  end

  byte_rotate #(.DataW(DataW)) u_rotate (
    .amount_i(-step2_q.off),
    .data_i  (raw_q),
    .data_o  (rotated)
  );
  for (genvar l = 0; l < int'(Lanes); l++) begin : g_lane
    assign data[8*l +: 8] = (BytesW'(l) < step2_q.hdr) ? hdr_q[8*l +: 8] : rotated[8*l +: 8];
  end

  assign hdr_re_o   = issue;
  assign hdr_beat_o = beat_q;
  always_ff @(posedge clk_i) begin
    step1_q     <= step0;
    step2_q     <= step1_q;
    step3_q     <= step2_q;
    raw_q       <= ram_rdata_i;
    hdr_q       <= hdr_data_i;
    beat_data_o <= data;
  end

  assign load_o       = valid3_q && step3_q.load;
  assign load_beat_o  = step3_q.index;
  assign beat_valid_o = valid3_q && !step3_q.load;
  assign beat_o       = step3_q.beat;
  assign beat_bytes_o = step3_q.bytes;
  assign beat_q_o     = step3_q.q;
  assign beat_skip_o  = step3_q.skip;

  wire moving = valid1_q || valid2_q || valid3_q;
  assign idle_o     = !busy_q && !moving && !free_valid_o;
  assign loading_o  = (busy_q && load_q) || (valid1_q && step1_q.load) ||
                      (valid2_q && step2_q.load) || load_o;
  assign hdr_busy_o = busy_q && (hdr_left_q != '0);

  logic unused;
  assign unused = ^{step1_q, step2_q, step3_q};

  `FERRONIC_ASSERT(Sized, !(busy_q && !empty_q) || left_q != '0, clk_i, rst_ni)
endmodule

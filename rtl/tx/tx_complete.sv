// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Waits for the reads of each frame, in order; tells how much of a frame has arrived, then returns
// the buffer and hands the frame on. An error of any of its reads drops it and is reported once.
//
// Latency from the last completion: one cycle to the used entry, two to the frame; one read a
// cycle. At most `Records` reads are in flight, at most `Frames` wait for the wire.
//
// Invariant: results wait in the order of the records with `reads`. While a frame is offered,
// `part_o` is of a later one.
`include "ferronic_assert.svh"
module tx_complete
  import ferronic_pkg::*;
  import tx_pkg::*;
#(
  parameter int unsigned Records = 16,
  parameter int unsigned Frames = 16
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         fn_rst_i,
  output logic         idle_o,

  input  logic         rec_valid_i,
  output logic         rec_ready_o,
  input  tx_record_t   rec_i,
  input  dma_rd_done_t rd_done_i,
  input  logic         drain_i,         // completions are of reads from before a function reset

  output logic         used_valid_o,
  input  logic         used_ready_i,
  output vq_used_t     used_o,
  output logic         queue_error_o,
  output qid_t         queue_error_q_o,

  output tx_len_t      part_o,          // bytes that are there of the frame that is not whole yet
  output qid_t         part_q_o,
  output logic         part_bad_o,      // some of it was not read
  output logic         frame_valid_o,
  input  logic         frame_ready_i,
  output tx_frame_t    frame_o
);
  localparam int unsigned RecLvlW = $clog2(Records) + 1;
  localparam int unsigned FrmLvlW = $clog2(Frames) + 1;

  logic               rec_valid, rec_pop;
  tx_record_t         rec;
  logic [RecLvlW-1:0] rec_level, res_level;
  logic [FrmLvlW-1:0] frm_level;

  prim_fifo #(.Width($bits(tx_record_t)), .Depth(Records)) u_records (
    .clk_i, .rst_ni,
    .clr_i     (fn_rst_i),
    .wr_valid_i(rec_valid_i),
    .wr_ready_o(rec_ready_o),
    .wr_data_i (rec_i),
    .rd_valid_o(rec_valid),
    .rd_ready_i(rec_pop),
    .rd_data_o (rec),
    .level_o   (rec_level)
  );

  // Results of reads.
  logic res_push, res_ready, res_valid, res_err, res_pop;
  assign res_push = rd_done_i.valid && !drain_i;

  prim_fifo #(.Width(1), .Depth(Records)) u_results (
    .clk_i, .rst_ni,
    .clr_i     (fn_rst_i),
    .wr_valid_i(res_push),
    .wr_ready_o(res_ready),
    .wr_data_i (rd_done_i.err),
    .rd_valid_o(res_valid),
    .rd_ready_i(res_pop),
    .rd_data_o (res_err),
    .level_o   (res_level)
  );

  logic      frm_ready, failed_q;
  tx_frame_t frm;
  wire       due = rec_valid && (res_valid || !rec.reads) && (frm_ready || !rec.last);
  wire       has_used = rec.last && (rec.kind != TxOther);
  wire       failed = failed_q || (rec.reads && res_err);

  assign rec_pop = due && (used_ready_i || !has_used);
  assign res_pop = rec_pop && rec.reads;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      failed_q <= 1'b0;
      part_o   <= '0;
    end else if (rec_pop) begin
      failed_q <= failed && !rec.last;
      if (rec.last) part_o <= '0;
      else part_o <= rec.len;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rec_pop) part_q_o <= rec.q;
  end
  assign part_bad_o     = failed_q;
  assign used_valid_o   = due && has_used;
  assign used_o.q       = rec.q;
  assign used_o.publish = 1'b1;
  assign used_o.id      = rec.id;
  assign used_o.marker  = rec.marker;
  assign used_o.len     = 32'd0;

  assign frm.kind = (failed && rec.kind != TxOther) ? TxRead : rec.kind;
  assign frm.q    = rec.q;
  assign frm.len  = rec.len;

  prim_fifo #(.Width($bits(tx_frame_t)), .Depth(Frames)) u_frames (
    .clk_i, .rst_ni,
    .clr_i     (fn_rst_i),
    .wr_valid_i(rec_pop && rec.last),
    .wr_ready_o(frm_ready),
    .wr_data_i (frm),
    .rd_valid_o(frame_valid_o),
    .rd_ready_i(frame_ready_i),
    .rd_data_o (frame_o),
    .level_o   (frm_level)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) queue_error_o <= 1'b0;
    else queue_error_o <= rec_pop && rec.last && failed && !fn_rst_i;
  end
  always_ff @(posedge clk_i) begin
    queue_error_q_o <= rec.q;
  end

  assign idle_o = !rec_valid && !frame_valid_o && !queue_error_o;

  logic unused;
  assign unused = ^{rec_level, res_level, frm_level, rd_done_i.cookie};

  `FERRONIC_ASSERT(ResultHasRoom, !res_push || res_ready, clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(UsedStable, used_valid_o, used_ready_i || fn_rst_i, used_o,
                          clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(FrameStable, frame_valid_o, frame_ready_i || fn_rst_i, frame_o,
                          clk_i, rst_ni)
endmodule

// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Transmit path: buffers in host memory to frames on the wire.
//
//   work -> tx_sched -> tx_reader -> dma_read -> frame RAM -> tx_out -> wire
//                            \-> records -> tx_complete -> used ring
//
// The function reset `fn_rst_i` may come at any moment, for one cycle or more: all frames are thrown
// away, a frame that is half out ends with last and abort. With `pause_i` what was begun ends by
// itself and `idle_o` rises.
//
// The walker is asked for one buffer at a time, and every buffer is committed after its last
// segment; nothing is committed after an answer with `none` or `err`.
module tx_path
  import ferronic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned QueuePairs = 4,
  parameter int unsigned RamBytes = (DataW >= 256) ? 32768 : 16384,
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned BytesW = $clog2(Lanes) + 1,
  localparam int unsigned WordW = 16 - $clog2(Lanes)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              fn_rst_i,
  input  logic              pause_i,
  output logic              idle_o,          // nothing in flight, and no queue waits unless paused

  // Work: a pulse when a queue became non-empty, and a combinational look-up.
  input  logic              work_valid_i,
  input  qid_t              work_q_i,
  output qid_t              check_q_o,
  input  logic              has_work_i,

  // Walker: one buffer a request.
  output logic              buf_req_valid_o,
  input  logic              buf_req_ready_i,
  output qid_t              buf_req_q_o,
  input  logic              seg_valid_i,
  output logic              seg_ready_o,
  input  vq_seg_t           seg_i,
  output logic              buf_commit_o,
  output qid_t              buf_commit_q_o,

  // dma_read: requests, and the write bus of the frame RAMs (only DstTx is taken).
  output logic              rd_req_valid_o,
  input  logic              rd_req_ready_i,
  output dma_rd_req_t       rd_req_o,
  input  dma_rd_done_t      rd_done_i,
  input  logic [Lanes-1:0]  ram_we_i,
  input  dma_dst_e          ram_dst_i,
  input  logic [WordW-1:0]  ram_waddr_i,
  input  logic [Lanes-1:0]  ram_winc_i,
  input  logic [DataW-1:0]  ram_wdata_i,

  // Used ring, counters, errors.
  output logic              used_valid_o,
  input  logic              used_ready_i,
  output vq_used_t          used_o,
  output frame_event_t      event_o,         // when the frame was read, or `drop`
  output logic              queue_error_o,   // pulse: a read of this queue's memory failed
  output qid_t              queue_error_q_o,
  output logic              drop_short_o,    // one-cycle pulses, one a frame
  output logic              drop_long_o,
  output logic              drop_offload_o,  // asks for an offload that was not negotiated
  output logic              drop_read_o,     // a read failed
  output logic              drop_other_o,    // broken descriptor chain

  // Wire.
  output logic              tx_valid_o,
  input  logic              tx_ready_i,
  output logic              tx_last_o,
  output logic              tx_abort_o,
  output logic [BytesW-1:0] tx_bytes_o,
  output logic [DataW-1:0]  tx_data_o
);
endmodule

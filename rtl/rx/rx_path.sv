// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Receive path: frames from the wire to buffers in host memory.
//
//   wire -> rx_fifo (store and forward) -> rx_steer -> lro_table -> rx_writer -> DMA
//            | \-> frame RAM ---------------------------------------> RAM read port
//            \-> rx_filter, rx_check (with rx_hash)
//
// Segments of a flow become parts of one unit (LRO) if `lro_cfg_i` and the features say so.
//
// The function reset `fn_rst_i` may come at any moment, for one cycle or more: all frames are
// thrown away, a frame that is half in is swallowed to its end. With `pause_i` what was begun ends
// by itself, no new buffer is asked for, and `idle_o` rises; frames in the FIFO stay there.
//
// The walker is asked for one buffer at a time. After an answer with `err` neither commit nor
// rewind follows; after `none` a rewind does. Commit and rewind never come in one cycle.
module rx_path
  import ferronic_pkg::*;
  import lro_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned RamBytes = (DataW == 512) ? 65536 : (DataW == 256) ? 32768 : 16384,
  parameter int unsigned RxWaitCycles = 12500,
  parameter int unsigned MaxBuffers = 64, // of one frame; the walker must be able to give as many
  parameter int unsigned LroContexts = 16, // 0: no LRO
  parameter bit          LroRelaxed = 1'b1, // its relaxed profile can be set
  parameter int unsigned QueuePairs = 64,
  parameter bit          Steering = 1'b1,   // by RSS, or by the queue that transmits
  parameter bit          Filters = 1'b1,
  parameter bit          TimeSkip = 1'b1,
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned BytesW = $clog2(Lanes) + 1,
  localparam int unsigned WordW = 16 - $clog2(Lanes)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              fn_rst_i,
  input  logic              pause_i,
  output logic              idle_o,     // nothing in flight, and no frame waits unless paused
  output logic              stalled_o,  // as idle_o but for a frame that waits for a buffer without
                                        // a time limit: only `buf_avail_i` or the wire moves on

  // Settings. `pairs_in_use_i` is 1 to 64, `max_frame_i` counts bytes without FCS.
  input  logic [6:0]        pairs_in_use_i,
  input  logic              mrg_rxbuf_i,
  input  logic              guest_csum_i,
  input  logic              driver_ok_i,
  input  logic              lossless_i,
  input  logic [15:0]       max_frame_i,
  input  logic              link_up_i,
  input  lro_cfg_t          lro_cfg_i,
  input  logic              guest_tso4_i,    // units of that version may be delivered
  input  logic              guest_tso6_i,
  input  logic              lro_flush_i,     // deliver what is held, hold nothing until this ends
  output logic              lro_flushed_o,   // all is delivered
  input  vq_clear_t         clear_i,         // of a queue that is reset nothing is delivered
  input  logic [63:0]       time_i,          // time base
  input  steer_cfg_t        steer_i,
  input  steer_write_t      steer_write_i,
  input  tx_flow_t          flow_i,          // a frame of it is sent
  input  filter_cfg_t       filter_i,
  input  filter_write_t     filter_write_i,
  output logic              quiet_o,         // as idle_o, also while units are held
  output logic              timer_armed_o,   // a unit is held; if idle or stalled, it will be
  output logic [24:0]       timer_left_o,    // closed in so many cycles
  output lro_event_t        lro_event_o,
  output logic              flow_armed_o,    // likewise, when flows that were sent to age
  output logic [31:0]       flow_left_o,

  // Wire.
  input  logic              rx_valid_i,
  output logic              rx_ready_o,
  input  logic              rx_last_i,
  input  logic              rx_abort_i,
  input  logic [BytesW-1:0] rx_bytes_i,
  input  logic [DataW-1:0]  rx_data_i,

  // Walker: one buffer a request.
  output logic              buf_req_valid_o,
  input  logic              buf_req_ready_i,
  output qid_t              buf_req_q_o,
  input  logic              seg_valid_i,
  output logic              seg_ready_o,
  input  vq_seg_t           seg_i,
  output logic              buf_commit_o,
  output qid_t              buf_commit_q_o,
  output logic              buf_rewind_o,
  output qid_t              buf_rewind_q_o,
  input  logic              buf_avail_i,     // pulse: some receive queue has new buffers
  output qid_t              buf_look_q_o,
  input  vq_ptr_t           buf_count_i,     // buffers at hand in that queue

  // dma_write: commands, and the read port of the frame RAM.
  output logic              wr_cmd_valid_o,
  input  logic              wr_cmd_ready_i,
  output dma_wr_cmd_t       wr_cmd_o,
  input  logic              wr_done_i,
  input  logic              ram_re_i,
  input  logic [WordW-1:0]  ram_raddr_i,
  input  logic [Lanes-1:0]  ram_rinc_i,
  output logic [DataW-1:0]  ram_rdata_o,

  // Used ring, counters.
  output logic              used_valid_o,
  input  logic              used_ready_i,
  output vq_used_t          used_o,
  output frame_event_t      event_o,         // `drop` is set for frames dropped after steering
  output logic              drop_short_o,    // one-cycle pulses, one a frame
  output logic              drop_long_o,
  output logic              drop_abort_o,
  output logic              drop_full_o,     // the frame FIFO had no space
  output logic              drop_filter_o,
  output logic              drop_nobuf_o,    // no buffer was posted in time, or it was too small
  output logic              drop_other_o     // broken descriptor chain
);
  localparam int unsigned AddrW = $clog2(RamBytes / Lanes);

  logic              check_ready, beat_valid, beat_first, beat_last, result_valid;
  logic [BytesW-1:0] beat_bytes;
  logic [DataW-1:0]  beat_data;
  rx_verdict_t       verdict;
  logic             whole_valid, whole_ready;
  rx_frame_t        whole;
  logic             frame_valid, frame_ready, release_valid, patch_valid, patch_ready;
  rx_frame_t        frame;
  qid_t             frame_q;
  logic             offer, offer_first, filter_ready, filter_drop, steer_idle, flows_settled;
  logic [15:0]      release_len, patch_ptr, patch_num_buffers;
  logic [Lanes-1:0] ram_we, ram_winc;
  logic [AddrW-1:0] ram_waddr;
  logic [DataW-1:0] ram_wdata;
  logic             fifo_idle, writer_idle;
  logic             writer_rest, writer_stalled;
  logic             scratch_hold, scratch_valid, scratch_ready, headers_ready;
  logic [1:0]       scratch_word;
  logic [DataW-1:0] scratch_data;
  logic [15:0]      scratch_ptr;

  // What was negotiated comes from far and does not change while frames are here.
  logic mrg_rxbuf_q, guest_csum_q, guest_tso4_q, guest_tso6_q;
  always_ff @(posedge clk_i) begin
    mrg_rxbuf_q  <= mrg_rxbuf_i;
    guest_csum_q <= guest_csum_i;
    guest_tso4_q <= guest_tso4_i && guest_csum_i;
    guest_tso6_q <= guest_tso6_i && guest_csum_i;
  end

  // What is held is delivered when the link goes down, too.
  logic link_q, down_q, flush_q, flushed;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      link_q  <= 1'b0;
      down_q  <= 1'b0;
      flush_q <= 1'b0;
    end else begin
      link_q  <= link_up_i;
      down_q  <= (link_q && !link_up_i) || (down_q && !flushed);
      flush_q <= lro_flush_i || down_q;
    end
  end
  assign lro_flushed_o = flushed && lro_flush_i;

  localparam int unsigned Contexts = (LroContexts == 0) ? 4 : LroContexts;
  localparam int unsigned CtxW = $clog2(Contexts);
  logic                   op_valid, op_ready, table_idle, opened, closed, touch, due, due_hold;
  logic                   settled, timer_settled, low_busy, low_due;
  lro_op_t                op;
  logic [Contexts-1:0]    op_close, open, look_open;
  logic [CtxW-1:0]        op_ctx, ctx, close_ctx, due_ctx, low_ctx;
  qid_t                   look_q;
  logic [13:0]            look_size, opened_pay;
  logic [7:0]             opened_ttl;
  logic [15:0]            look_total, touch_total;

  rx_fifo #(.DataW(DataW), .RamBytes(RamBytes)) u_fifo (
    .clk_i, .rst_ni, .fn_rst_i,
    .idle_o             (fifo_idle),
    .lossless_i, .max_frame_i,
    .rx_valid_i, .rx_ready_o, .rx_last_i, .rx_abort_i, .rx_bytes_i, .rx_data_i,
    .check_ready_i      (check_ready),
    .beat_valid_o       (beat_valid),
    .beat_first_o       (beat_first),
    .beat_last_o        (beat_last),
    .beat_bytes_o       (beat_bytes),
    .beat_data_o        (beat_data),
    .mark_i             (guest_csum_q),
    .result_valid_i     (result_valid),
    .verdict_i          (verdict),
    .offer_o            (offer),
    .offer_first_o      (offer_first),
    .filter_ready_i     (filter_ready),
    .filter_drop_i      (filter_drop),
    .frame_valid_o      (whole_valid),
    .frame_ready_i      (whole_ready),
    .frame_o            (whole),
    .release_valid_i    (release_valid),
    .release_len_i      (release_len),
    .patch_valid_i      (patch_valid),
    .patch_ready_o      (patch_ready),
    .patch_ptr_i        (patch_ptr),
    .patch_num_buffers_i(patch_num_buffers),
    .scratch_hold_i     (scratch_hold),
    .scratch_valid_i    (scratch_valid),
    .scratch_ready_o    (scratch_ready),
    .scratch_word_i     (scratch_word),
    .scratch_data_i     (scratch_data),
    .scratch_ptr_o      (scratch_ptr),
    .headers_ready_i    (headers_ready),
    .ram_we_o           (ram_we),
    .ram_waddr_o        (ram_waddr),
    .ram_winc_o         (ram_winc),
    .ram_wdata_o        (ram_wdata),
    .drop_short_o, .drop_long_o, .drop_abort_o, .drop_full_o, .drop_filter_o
  );

  if (Filters) begin : g_filter
    rx_filter #(.DataW(DataW), .Ways((DataW == 64) ? 2 : 4)) u_filter (
      .clk_i, .rst_ni,
      .clr_i  (fn_rst_i),
      .cfg_i  (filter_i),
      .write_i(filter_write_i),
      .offer_i(offer),
      .first_i(offer_first),
      .store_i(beat_valid),
      .data_i (beat_data),
      .ready_o(filter_ready),
      .drop_o (filter_drop)
    );
  end else begin : g_no_filter
    assign filter_ready = 1'b1;
    assign filter_drop  = 1'b0;
    logic unused_filter;
    assign unused_filter = ^{filter_i, filter_write_i, offer, offer_first};
  end

  // The whole hash is for headers, which do not have it yet.
  logic [31:0]  hash;
  hash_report_e report;
  rx_check #(
    .DataW(DataW), .Apart(LroContexts != 0 || Steering), .Rss(Steering)
  ) u_check (
    .clk_i, .rst_ni,
    .clr_i         (fn_rst_i),
    .ready_o       (check_ready),
    .beat_valid_i  (beat_valid),
    .beat_first_i  (beat_first),
    .beat_last_i   (beat_last),
    .beat_bytes_i  (beat_bytes),
    .beat_data_i   (beat_data),
    .steer_i,
    .steer_write_i,
    .result_valid_o(result_valid),
    .verdict_o     (verdict),
    .hash_o        (hash),
    .report_o      (report)
  );

  rx_steer #(
    .QueuePairs(QueuePairs), .Flows((QueuePairs > 4) ? 4096 : 256), .Steering(Steering),
    .TimeSkip(TimeSkip)
  ) u_steer (
    .clk_i, .rst_ni, .fn_rst_i,
    .cfg_i         (steer_i),
    .write_i       (steer_write_i),
    .flow_i, .pairs_in_use_i, .time_i,
    .idle_o        (steer_idle),
    .settled_o     (flows_settled),
    .timer_armed_o (flow_armed_o),
    .timer_left_o  (flow_left_o),
    .frame_valid_i (whole_valid),
    .frame_ready_o (whole_ready),
    .frame_i       (whole),
    .frame_valid_o (frame_valid),
    .frame_ready_i (frame_ready),
    .frame_o       (frame),
    .frame_q_o     (frame_q)
  );

  lane_ram #(.DataW(DataW), .Bytes(RamBytes)) u_ram (
    .clk_i,
    .we_i   (ram_we),
    .waddr_i(ram_waddr),
    .winc_i (ram_winc),
    .wdata_i(ram_wdata),
    .re_i   (ram_re_i),
    .raddr_i(ram_raddr_i[AddrW-1:0]),
    .rinc_i (ram_rinc_i),
    .rdata_o(ram_rdata_o)
  );
  if (AddrW < WordW) begin : g_wrap
    logic unused; // addresses wrap at the size of the RAM
    assign unused = ^ram_raddr_i[WordW-1:AddrW];
  end

  if (LroContexts != 0) begin : g_lro
    lro_table #(
      .DataW(DataW), .Contexts(Contexts), .QueuePairs(QueuePairs), .Relaxed(LroRelaxed)
    ) u_table (
      .clk_i, .rst_ni, .fn_rst_i,
      .idle_o         (table_idle),
      .cfg_i          (lro_cfg_i),
      .tso4_i         (guest_tso4_q),
      .tso6_i         (guest_tso6_q),
      .stop_i         (flush_q),
      .beat_valid_i   (beat_valid),
      .beat_first_i   (beat_first),
      .beat_last_i    (beat_last),
      .beat_data_i    (beat_data),
      .headers_ready_o(headers_ready),
      .frame_valid_i  (frame_valid),
      .frame_ready_o  (frame_ready),
      .frame_i        (frame),
      .frame_q_i      (frame_q),
      .op_valid_o     (op_valid),
      .op_ready_i     (op_ready),
      .op_o           (op),
      .op_close_o     (op_close),
      .op_ctx_o       (op_ctx),
      .frame_q_o      (buf_look_q_o),
      .count_i        (buf_count_i),
      .rest_i         (writer_rest),
      .low_busy_o     (low_busy),
      .low_due_o      (low_due),
      .low_ctx_o      (low_ctx),
      .touch_i        (touch),
      .opened_i       (opened),
      .touch_ctx_i    (ctx),
      .opened_q_i     (buf_req_q_o),
      .opened_pay_i   (opened_pay),
      .opened_ttl_i   (opened_ttl),
      .touch_total_i  (touch_total),
      .closed_i       (closed),
      .closed_ctx_i   (close_ctx),
      .open_o         (open),
      .look_q_i       (look_q),
      .look_open_o    (look_open),
      .look_ctx_i     (close_ctx),
      .look_size_o    (look_size),
      .look_total_o   (look_total)
    );

    lro_timer #(.Contexts(Contexts)) u_timer (
      .clk_i, .rst_ni, .fn_rst_i,
      .time_i    (time_i[24:0]),
      .gap_i     (lro_cfg_i.gap),
      .hold_i    (lro_cfg_i.hold),
      .open_i    (open),
      .touch_i   (touch),
      .first_i   (opened),
      .ctx_i     (ctx),
      .due_o     (due),
      .due_ctx_o (due_ctx),
      .due_hold_o(due_hold),
      .settled_o (timer_settled),
      .left_o    (timer_left_o)
    );
    assign settled = timer_settled && !low_busy;
  end else begin : g_alone
    // Every frame goes on alone.
    assign op_valid    = frame_valid;
    assign frame_ready = op_ready;
    assign table_idle  = 1'b1;
    always_comb begin
      op     = '0;
      op.ptr = frame.ptr;
      op.len = frame.len[13:0];
      op.q   = frame_q;
    end
    assign headers_ready = 1'b1;
    assign {op_close, op_ctx, open, look_open, look_size, look_total} = '0;
    assign {due, due_ctx, due_hold, timer_left_o, low_busy, low_due, low_ctx} = '0;
    assign {timer_settled, buf_look_q_o} = '0;
    assign settled = 1'b1;
    logic unused_lro;
    assign unused_lro = ^{lro_cfg_i, guest_tso4_q, guest_tso6_q, time_i, opened, closed, touch, ctx,
                          look_q, close_ctx, opened_pay, touch_total, buf_count_i, timer_settled,
                          low_busy, opened_ttl, frame, writer_rest};
  end
  assign timer_armed_o = (open != '0);

  rx_writer #(
    .RxWaitCycles(RxWaitCycles), .MaxBuffers(MaxBuffers), .Contexts(Contexts),
    .DataW(DataW), .Lro(LroContexts != 0), .Relaxed(LroRelaxed), .Overlap(DataW > 64)
  ) u_writer (
    .clk_i, .rst_ni, .fn_rst_i, .pause_i,
    .idle_o             (writer_idle),
    .stalled_o          (writer_stalled),
    .rest_o             (writer_rest),
    .pairs_in_use_i, .mrg_rxbuf_i(mrg_rxbuf_q), .driver_ok_i, .lossless_i,
    .op_valid_i         (op_valid),
    .op_ready_o         (op_ready),
    .op_i               (op),
    .op_close_i         (op_close),
    .op_ctx_i           (op_ctx),
    .open_i             (open),
    .look_q_o           (look_q),
    .look_open_i        (look_open),
    .close_ctx_o        (close_ctx),
    .look_size_i        (look_size),
    .look_total_i       (look_total),
    .opened_o           (opened),
    .ctx_o              (ctx),
    .opened_pay_o       (opened_pay),
    .opened_ttl_o       (opened_ttl),
    .touch_total_o      (touch_total),
    .closed_o           (closed),
    .touch_o            (touch),
    .due_i              (due),
    .due_ctx_i          (due_ctx),
    .due_hold_i         (due_hold),
    .low_due_i          (low_due),
    .low_ctx_i          (low_ctx),
    .lro_event_o,
    .flush_i            (flush_q),
    .flushed_o          (flushed),
    .clear_i,
    .scratch_hold_o     (scratch_hold),
    .scratch_valid_o    (scratch_valid),
    .scratch_ready_i    (scratch_ready),
    .scratch_word_o     (scratch_word),
    .scratch_data_o     (scratch_data),
    .scratch_ptr_i      (scratch_ptr),
    .release_valid_o    (release_valid),
    .release_len_o      (release_len),
    .patch_valid_o      (patch_valid),
    .patch_ready_i      (patch_ready),
    .patch_ptr_o        (patch_ptr),
    .patch_num_buffers_o(patch_num_buffers),
    .buf_req_valid_o, .buf_req_ready_i, .buf_req_q_o,
    .seg_valid_i, .seg_ready_o, .seg_i,
    .buf_commit_o, .buf_commit_q_o, .buf_rewind_o, .buf_rewind_q_o, .buf_avail_i,
    .wr_cmd_valid_o, .wr_cmd_ready_i, .wr_cmd_o, .wr_done_i,
    .used_valid_o, .used_ready_i, .used_o,
    .event_o, .drop_nobuf_o, .drop_other_o
  );

  // What was delivered for a change of settings must be seen before it is answered.
  wire waits = !fifo_idle || !steer_idle || !table_idle;
  assign quiet_o   = (writer_idle && (pause_i || !waits)) || writer_stalled || flushed;
  assign idle_o    = writer_idle && (pause_i || (!waits && settled && flows_settled && !down_q));
  assign stalled_o = writer_stalled && settled && flows_settled && !down_q;

  logic unused_hash;
  assign unused_hash = ^{hash, report};
endmodule

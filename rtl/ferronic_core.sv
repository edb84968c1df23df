// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The card between PCIe transaction-layer packets and the frame streams of the wire.
//
// No output depends combinationally on an input. TLP channels carry the header (four DWs, DW0 in
// bits 31:0 with fmt/type in 31:24, DW3 zero for three-DW headers) in `hdr`, valid with `sop`; the
// payload starts in lane 0 of the same beat, byte 0 in bits 7:0; a TLP without payload is one beat
// with sop and eop. `ready` on an outgoing channel means the link has the credits for the beat's
// TLP.
module ferronic_core
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned QueuePairs = 4,
  // Simulation may skip idle time; a board has no use for the logic, and `idle_o` is 0 there.
  parameter bit TimeSkip = 1'b1,
  parameter int unsigned LroContexts = 16,  // flows whose segments are merged at once; 0: none
  parameter bit LroRelaxed = 1'b1,          // there is a profile that cannot be undone, too
  parameter bit TxEmpty = 1'b1,             // ring-empty interrupts, max-age, markers
  parameter bit Steering = 1'b1,            // by RSS, or by the queue that transmits
  parameter bit Filters = 1'b1,             // of received frames
  localparam int unsigned BytesW = $clog2(DataW / 8) + 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  strap_t            strap_i,

  // Simulation time: nothing will happen by itself while `idle_o` before `deadline_o` (cycles of
  // the time base); `skip_i` is added to the time base in this cycle.
  output logic              idle_o,
  output logic [63:0]       deadline_o,
  output logic [63:0]       time_o,
  input  logic [63:0]       skip_i,

  // Requests from the link: configuration, memory reads and writes.
  input  logic              rq_valid_i,
  output logic              rq_ready_o,
  input  logic              rq_sop_i,
  input  logic              rq_eop_i,
  input  logic [127:0]      rq_hdr_i,
  input  logic [DataW-1:0]  rq_data_i,

  // Completions from the link, always taken: space was reserved before the read was issued.
  input  logic              rc_valid_i,
  output logic              rc_ready_o,
  input  logic              rc_sop_i,
  input  logic              rc_eop_i,
  input  logic [127:0]      rc_hdr_i,
  input  logic [DataW-1:0]  rc_data_i,

  // Posted writes, non-posted reads and completions to the link.
  output logic              pt_valid_o,
  input  logic              pt_ready_i,
  output logic              pt_sop_o,
  output logic              pt_eop_o,
  output logic [127:0]      pt_hdr_o,
  output logic [DataW-1:0]  pt_data_o,

  output logic              np_valid_o,
  input  logic              np_ready_i,
  output logic [127:0]      np_hdr_o,

  output logic              cc_valid_o,
  input  logic              cc_ready_i,
  output logic              cc_sop_o,
  output logic              cc_eop_o,
  output logic [127:0]      cc_hdr_o,
  output logic [DataW-1:0]  cc_data_o,

  // Frames to the wire: whole, without FCS, `bytes` counts the valid bytes of the beat (all of them
  // before `last`); `abort` with `last` makes the frame void.
  output logic              tx_valid_o,
  input  logic              tx_ready_i,
  output logic              tx_last_o,
  output logic              tx_abort_o,
  output logic [BytesW-1:0] tx_bytes_o,
  output logic [DataW-1:0]  tx_data_o,

  // Frames from the wire, likewise.
  input  logic              rx_valid_i,
  output logic              rx_ready_o,
  input  logic              rx_last_i,
  input  logic              rx_abort_i,
  input  logic [BytesW-1:0] rx_bytes_i,
  input  logic [DataW-1:0]  rx_data_i
);
  localparam int unsigned NumQueues = 2 * QueuePairs;
  localparam int unsigned NumVectors = NumQueues + 1;
  localparam int unsigned Lanes = DataW / 8;
  localparam int unsigned WordW = 16 - $clog2(Lanes);
  localparam int unsigned RxDepth = 128;
  localparam int unsigned TxDepth = 64;
  // A frame of 9,216 bytes in buffers of 128 takes 73.
  localparam int unsigned MaxBuffers = 96;
  localparam bit Lro = (LroContexts != 0);

  if (DataW != 64 && DataW != 128 && DataW != 256 && DataW != 512) begin : g_bad_width
    $error("%m: DataW (%0d) must be 64, 128, 256 or 512", DataW);
  end
  if (QueuePairs < 1 || QueuePairs > MaxQueues / 2 ||
      (QueuePairs & (QueuePairs - 1)) != 0) begin : g_bad_pairs
    $error("%m: QueuePairs (%0d) must be a power of two from 1 to 64", QueuePairs);
  end

  // ---------------------------------------------------------------- time
  logic [63:0] time_q;
  wire  [63:0] skip = TimeSkip ? skip_i : '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) time_q <= '0;
    else time_q <= time_q + 64'd1 + skip;
  end
  assign time_o = time_q;

  // ---------------------------------------------------------------- resets
  logic       halt, pause, fn_rst, fn_busy, queue_reset_busy, reset_idle;
  logic       ep_idle, drained, flr, d3_exit, d3hot, vio_reset, queue_reset;
  qid_t       queue_reset_q, select_q;
  vq_clear_t  clear;
  logic [1:0] clear_area;

  fn_reset #(.NumQueues(NumQueues)) u_fn_reset (
    .clk_i, .rst_ni,
    .reset_i        (vio_reset),
    .flr_i          (flr),
    .d3_exit_i      (d3_exit),
    .queue_reset_i  (queue_reset),
    .queue_reset_q_i(queue_reset_q),
    .dma_idle_i     (ep_idle),
    .drained_i      (drained),
    .halt_o         (halt),
    .pause_o        (pause),
    .fn_rst_o       (fn_rst),
    .busy_o         (fn_busy),
    .select_q_i     (select_q),
    .queue_busy_o   (queue_reset_busy),
    .clear_o        (clear),
    .clear_area_o   (clear_area),
    .idle_o         (reset_idle)
  );

  // ---------------------------------------------------------------- PCIe
  logic             ctl_req_valid, ctl_req_ready, tx_req_valid, tx_req_ready;
  dma_rd_req_t      ctl_req, tx_req;
  dma_rd_done_t     ctl_done, tx_done;
  logic [Lanes-1:0] ram_we, ram_winc;
  dma_dst_e         ram_dst;
  logic [WordW-1:0] ram_waddr;
  logic [DataW-1:0] ram_wdata;
  logic             wr_cmd_valid, wr_cmd_ready, wr_done, rx_ram_re;
  dma_wr_cmd_t      wr_cmd;
  logic [WordW-1:0] rx_ram_raddr;
  logic [Lanes-1:0] rx_ram_rinc;
  logic [DataW-1:0] rx_ram_rdata;
  logic             ctl_wr_valid, ctl_wr_ready, ctl_wr_last;
  ctl_wr_hdr_t      ctl_wr_hdr;
  logic [DataW-1:0] ctl_wr_data;
  reg_req_t         reg_req;
  reg_rsp_t         reg_rsp;
  irq_req_t         irq;
  logic             irq_ready, msix_enable, ep_quiet, ep_drained, ev_swallowed;
  logic             timeout_armed, bus_master;
  logic [31:0]      timeout_left;
  logic             ev_unexpected, ev_cpl_err, ev_poisoned, ev_timeout, ev_bad_req, ev_irq;

  pcie_endpoint #(.DataW(DataW), .NumVectors(NumVectors)) u_pcie (
    .clk_i, .rst_ni,
    .rq_valid_i, .rq_ready_o, .rq_sop_i, .rq_eop_i, .rq_hdr_i, .rq_data_i,
    .rc_valid_i, .rc_ready_o, .rc_sop_i, .rc_eop_i, .rc_hdr_i, .rc_data_i,
    .pt_valid_o, .pt_ready_i, .pt_sop_o, .pt_eop_o, .pt_hdr_o, .pt_data_o,
    .np_valid_o, .np_ready_i, .np_hdr_o,
    .cc_valid_o, .cc_ready_i, .cc_sop_o, .cc_eop_o, .cc_hdr_o, .cc_data_o,
    .halt_i           (halt),
    .idle_o           (ep_idle),
    .fn_rst_i         (fn_rst),
    .fn_busy_i        (fn_busy),
    .flr_o            (flr),
    .d3_exit_o        (d3_exit),
    .d3hot_o          (d3hot),
    .quiet_o          (ep_quiet),
    .drained_o        (ep_drained),
    .timeout_armed_o  (timeout_armed),
    .timeout_left_o   (timeout_left),
    .skip_i           (skip),
    .ctl_req_valid_i  (ctl_req_valid),
    .ctl_req_ready_o  (ctl_req_ready),
    .ctl_req_i        (ctl_req),
    .ctl_done_o       (ctl_done),
    .tx_req_valid_i   (tx_req_valid),
    .tx_req_ready_o   (tx_req_ready),
    .tx_req_i         (tx_req),
    .tx_done_o        (tx_done),
    .ram_we_o         (ram_we),
    .ram_dst_o        (ram_dst),
    .ram_waddr_o      (ram_waddr),
    .ram_winc_o       (ram_winc),
    .ram_wdata_o      (ram_wdata),
    .wr_cmd_valid_i   (wr_cmd_valid),
    .wr_cmd_ready_o   (wr_cmd_ready),
    .wr_cmd_i         (wr_cmd),
    .wr_done_o        (wr_done),
    .rx_ram_re_o      (rx_ram_re),
    .rx_ram_raddr_o   (rx_ram_raddr),
    .rx_ram_rinc_o    (rx_ram_rinc),
    .rx_ram_rdata_i   (rx_ram_rdata),
    .ctl_wr_valid_i   (ctl_wr_valid),
    .ctl_wr_ready_o   (ctl_wr_ready),
    .ctl_wr_hdr_i     (ctl_wr_hdr),
    .ctl_wr_last_i    (ctl_wr_last),
    .ctl_wr_data_i    (ctl_wr_data),
    .reg_req_o        (reg_req),
    .reg_rsp_i        (reg_rsp),
    .irq_i            (irq),
    .irq_ready_o      (irq_ready),
    .bus_master_o     (bus_master),
    .msix_enable_o    (msix_enable),
    .ev_unexpected_o  (ev_unexpected),
    .ev_cpl_err_o     (ev_cpl_err),
    .ev_poisoned_o    (ev_poisoned),
    .ev_timeout_o     (ev_timeout),
    .ev_bad_req_o     (ev_bad_req),
    .ev_irq_o         (ev_irq),
    .ev_swallowed_o   (ev_swallowed)
  );

  // ---------------------------------------------------------------- virtqueues and registers
  vq_used_t     rx_used, tx_used;
  logic         rx_used_valid, rx_used_ready, tx_used_valid, tx_used_ready;
  logic         rx_idle, rx_stalled, rx_quiet, tx_idle;
  lro_cfg_t     lro_cfg;
  lro_event_t   lro_event;
  logic         lro_flush, lro_flushed, guest_tso4, guest_tso6, lro_armed;
  logic [24:0]  lro_left;
  logic         rxb_req_valid, rxb_req_ready, rxb_seg_valid, rxb_seg_ready, rxb_commit, rxb_rewind;
  logic         txb_req_valid, txb_req_ready, txb_seg_valid, txb_seg_ready, txb_commit;
  vq_ptr_t      rxb_count;
  qid_t         rxb_look_q, rxb_req_q, txb_req_q, work_q, check_q, tx_error_q;
  vq_seg_t      rxb_seg, txb_seg;
  logic         buf_avail, work_valid, has_work, tx_error;
  logic         tx_armed;
  logic [23:0]  tx_left;
  logic         driver_ok, mrg_rxbuf, guest_csum, virtio_idle, virtio_drained, tx_drained, broken;
  tx_offload_t  tx_offload;
  logic         irq_event;
  qid_t         irq_q;
  frame_event_t rx_event, tx_event;
  logic [6:0]   pairs_in_use;
  logic [12:0]  card_event;
  steer_cfg_t   steer;
  steer_write_t steer_write;
  filter_cfg_t  filter;
  filter_write_t filter_write;
  tx_flow_t     tx_flow;
  logic         flow_armed;
  logic [31:0]  flow_left;

  virtio_engine #(
    .DataW(DataW), .NumQueues(NumQueues), .NumVectors(NumVectors), .RxDepth(RxDepth),
    .TxDepth(TxDepth), .MaxBuffers(MaxBuffers), .Lro(Lro),
    .LroContexts(LroContexts), .LroRelaxed(LroRelaxed), .TxEmpty(TxEmpty),
    .Steering(Steering), .Filters(Filters), .TimeSkip(TimeSkip)
  ) u_virtio (
    .clk_i, .rst_ni,
    .fn_rst_i          (fn_rst),
    .pause_i           (pause),
    .clear_i           (clear),
    .clear_area_i      (clear_area),
    .strap_i,
    .time_i            (time_q),
    .halt_i            (halt),
    .busy_i            (fn_busy),
    .swallowed_i       (ev_swallowed),
    .idle_o            (virtio_idle),
    .drained_o         (virtio_drained),
    .timer_armed_o     (tx_armed),
    .timer_left_o      (tx_left),
    .select_q_o        (select_q),
    .reset_o           (vio_reset),
    .queue_reset_o     (queue_reset),
    .queue_reset_q_o   (queue_reset_q),
    .queue_reset_busy_i(queue_reset_busy),
    .reg_req_i         (reg_req),
    .reg_rsp_o         (reg_rsp),
    .rd_req_valid_o    (ctl_req_valid),
    .rd_req_ready_i    (ctl_req_ready),
    .rd_req_o          (ctl_req),
    .rd_done_i         (ctl_done),
    .ram_we_i          (ram_we),
    .ram_dst_i         (ram_dst),
    .ram_waddr_i       (ram_waddr),
    .ram_winc_i        (ram_winc),
    .ram_wdata_i       (ram_wdata),
    .wr_valid_o        (ctl_wr_valid),
    .wr_ready_i        (ctl_wr_ready),
    .wr_hdr_o          (ctl_wr_hdr),
    .wr_last_o         (ctl_wr_last),
    .wr_data_o         (ctl_wr_data),
    .irq_o             (irq),
    .irq_ready_i       (irq_ready),
    .msix_enable_i     (msix_enable),
    .rxb_req_valid_i   (rxb_req_valid),
    .rxb_req_ready_o   (rxb_req_ready),
    .rxb_req_q_i       (rxb_req_q),
    .rxb_seg_valid_o   (rxb_seg_valid),
    .rxb_seg_ready_i   (rxb_seg_ready),
    .rxb_seg_o         (rxb_seg),
    .rxb_commit_i      (rxb_commit),
    .rxb_rewind_i      (rxb_rewind),
    .buf_avail_o       (buf_avail),
    .rxb_look_q_i      (rxb_look_q),
    .rxb_count_o       (rxb_count),
    .txb_req_valid_i   (txb_req_valid),
    .txb_req_ready_o   (txb_req_ready),
    .txb_req_q_i       (txb_req_q),
    .txb_seg_valid_o   (txb_seg_valid),
    .txb_seg_ready_i   (txb_seg_ready),
    .txb_seg_o         (txb_seg),
    .txb_commit_i      (txb_commit),
    .work_valid_o      (work_valid),
    .work_q_o          (work_q),
    .check_q_i         (check_q),
    .has_work_o        (has_work),
    .rx_used_valid_i   (rx_used_valid),
    .rx_used_ready_o   (rx_used_ready),
    .rx_used_i         (rx_used),
    .rx_quiet_i        (rx_quiet),
    .tx_used_valid_i   (tx_used_valid),
    .tx_used_ready_o   (tx_used_ready),
    .tx_used_i         (tx_used),
    .tx_quiet_i        (tx_idle),
    .tx_error_i        (tx_error),
    .tx_error_q_i      (tx_error_q),
    .rx_event_i        (rx_event),
    .tx_event_i        (tx_event),
    .card_event_i      (card_event),
    .driver_ok_o       (driver_ok),
    .mrg_rxbuf_o       (mrg_rxbuf),
    .guest_csum_o      (guest_csum),
    .guest_tso4_o      (guest_tso4),
    .guest_tso6_o      (guest_tso6),
    .tx_offload_o      (tx_offload),
    .pairs_in_use_o    (pairs_in_use),
    .lro_cfg_o         (lro_cfg),
    .lro_flush_o       (lro_flush),
    .lro_flushed_i     (lro_flushed),
    .lro_event_i       (lro_event),
    .steer_o           (steer),
    .steer_write_o     (steer_write),
    .filter_o          (filter),
    .filter_write_o    (filter_write),
    .broken_o          (broken),
    .irq_event_o       (irq_event),
    .irq_event_q_o     (irq_q)
  );

  // ---------------------------------------------------------------- receive
  logic        rx_short, rx_long, rx_abort, rx_full, rx_nobuf, rx_other, rx_filtered;
  qid_t        rxb_commit_q, rxb_rewind_q, txb_commit_q;
  // With an MTU on offer, larger frames are never passed up (virtio 1.2, "Feature bits").
  wire [15:0]  max_frame = (strap_i.mtu == '0) ? 16'(MaxFrameBytes)
                                               : strap_i.mtu + 16'(MinFrameBytes);

  rx_path #(.DataW(DataW), .MaxBuffers(MaxBuffers), .LroContexts(LroContexts),
            .LroRelaxed(LroRelaxed), .QueuePairs(QueuePairs), .Steering(Steering),
            .Filters(Filters), .TimeSkip(TimeSkip)) u_rx (
    .clk_i, .rst_ni,
    .fn_rst_i       (fn_rst),
    .pause_i        (pause),
    .idle_o         (rx_idle),
    .stalled_o      (rx_stalled),
    .pairs_in_use_i (pairs_in_use),
    .mrg_rxbuf_i    (mrg_rxbuf),
    .guest_csum_i   (guest_csum),
    .driver_ok_i    (driver_ok),
    .lossless_i     (strap_i.rx_lossless),
    .max_frame_i    (max_frame),
    .link_up_i      (strap_i.link_up),
    .lro_cfg_i      (lro_cfg),
    .guest_tso4_i   (guest_tso4),
    .guest_tso6_i   (guest_tso6),
    .lro_flush_i    (lro_flush),
    .lro_flushed_o  (lro_flushed),
    .clear_i        (clear),
    .time_i         (time_q),
    .steer_i        (steer),
    .steer_write_i  (steer_write),
    .flow_i         (tx_flow),
    .filter_i       (filter),
    .filter_write_i (filter_write),
    .flow_armed_o   (flow_armed),
    .flow_left_o    (flow_left),
    .quiet_o        (rx_quiet),
    .timer_armed_o  (lro_armed),
    .timer_left_o   (lro_left),
    .lro_event_o    (lro_event),
    .rx_valid_i, .rx_ready_o, .rx_last_i, .rx_abort_i, .rx_bytes_i, .rx_data_i,
    .buf_req_valid_o(rxb_req_valid),
    .buf_req_ready_i(rxb_req_ready),
    .buf_req_q_o    (rxb_req_q),
    .seg_valid_i    (rxb_seg_valid),
    .seg_ready_o    (rxb_seg_ready),
    .seg_i          (rxb_seg),
    .buf_commit_o   (rxb_commit),
    .buf_commit_q_o (rxb_commit_q),
    .buf_rewind_o   (rxb_rewind),
    .buf_rewind_q_o (rxb_rewind_q),
    .buf_avail_i    (buf_avail),
    .buf_look_q_o   (rxb_look_q),
    .buf_count_i    (rxb_count),
    .wr_cmd_valid_o (wr_cmd_valid),
    .wr_cmd_ready_i (wr_cmd_ready),
    .wr_cmd_o       (wr_cmd),
    .wr_done_i      (wr_done),
    .ram_re_i       (rx_ram_re),
    .ram_raddr_i    (rx_ram_raddr),
    .ram_rinc_i     (rx_ram_rinc),
    .ram_rdata_o    (rx_ram_rdata),
    .used_valid_o   (rx_used_valid),
    .used_ready_i   (rx_used_ready),
    .used_o         (rx_used),
    .event_o        (rx_event),
    .drop_short_o   (rx_short),
    .drop_long_o    (rx_long),
    .drop_abort_o   (rx_abort),
    .drop_full_o    (rx_full),
    .drop_filter_o  (rx_filtered),
    .drop_nobuf_o   (rx_nobuf),
    .drop_other_o   (rx_other)
  );

  // ---------------------------------------------------------------- transmit
  logic tx_short, tx_long, tx_unable, tx_read, tx_other;

  tx_path #(.DataW(DataW), .QueuePairs(QueuePairs), .Steering(Steering)) u_tx (
    .clk_i, .rst_ni,
    .fn_rst_i       (fn_rst),
    .pause_i        (pause),
    .offload_i      (tx_offload),
    .idle_o         (tx_idle),
    .drained_o      (tx_drained),
    .work_valid_i   (work_valid),
    .work_q_i       (work_q),
    .check_q_o      (check_q),
    .has_work_i     (has_work),
    .buf_req_valid_o(txb_req_valid),
    .buf_req_ready_i(txb_req_ready),
    .buf_req_q_o    (txb_req_q),
    .seg_valid_i    (txb_seg_valid),
    .seg_ready_o    (txb_seg_ready),
    .seg_i          (txb_seg),
    .buf_commit_o   (txb_commit),
    .buf_commit_q_o (txb_commit_q),
    .rd_req_valid_o (tx_req_valid),
    .rd_req_ready_i (tx_req_ready),
    .rd_req_o       (tx_req),
    .rd_done_i      (tx_done),
    .ram_we_i       (ram_we),
    .ram_dst_i      (ram_dst),
    .ram_waddr_i    (ram_waddr),
    .ram_winc_i     (ram_winc),
    .ram_wdata_i    (ram_wdata),
    .used_valid_o   (tx_used_valid),
    .used_ready_i   (tx_used_ready),
    .used_o         (tx_used),
    .event_o        (tx_event),
    .queue_error_o  (tx_error),
    .queue_error_q_o(tx_error_q),
    .drop_short_o   (tx_short),
    .drop_long_o    (tx_long),
    .drop_offload_o (tx_unable),
    .drop_read_o    (tx_read),
    .drop_other_o   (tx_other),
    .flow_o         (tx_flow),
    .tx_valid_o, .tx_ready_i, .tx_last_o, .tx_abort_o, .tx_bytes_o, .tx_data_o
  );

  // In the order of the window's card counters, RX_SHORT first.
  assign card_event = {
    rx_filtered, broken, ev_bad_req, ev_timeout, ev_poisoned, ev_cpl_err, ev_unexpected,
    tx_short || tx_long || tx_unable, rx_full, rx_nobuf, rx_abort, rx_long, rx_short
  };

  // ---------------------------------------------------------------- idleness
  assign drained    = rx_idle && tx_drained && virtio_drained && ep_drained;
  assign idle_o     = (rx_idle || rx_stalled) && tx_idle && virtio_idle && ep_quiet && reset_idle &&
                      TimeSkip;
  // The least of these times, if any is running.
  logic        any_armed;
  logic [31:0] first_left;
  always_comb begin
    any_armed  = timeout_armed;
    first_left = timeout_left;
    if (lro_armed && (!any_armed || {7'd0, lro_left} < first_left)) first_left = {7'd0, lro_left};
    any_armed |= lro_armed;
    if (tx_armed && (!any_armed || {8'd0, tx_left} < first_left)) first_left = {8'd0, tx_left};
    any_armed |= tx_armed;
    if (flow_armed && (!any_armed || flow_left < first_left)) first_left = flow_left;
    any_armed |= flow_armed;
  end
  assign deadline_o = (TimeSkip && any_armed) ? time_q + {32'd0, first_left} : '1;

  // Commits name the queue of the last request, which the walker knows.
  logic unused;
  assign unused = ^{rxb_commit_q, rxb_rewind_q, txb_commit_q, d3hot, bus_master, ev_irq, irq_event,
                    irq_q, rx_other, tx_read, tx_other};
endmodule

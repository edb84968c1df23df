// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The virtio half of the card: registers, and the split virtqueue engine. It hands the data path
// buffers as segments (walkers) and takes used entries back; nothing outside knows a ring.
//
//   doorbell -> vq_avail -> vq_desc_fetch -> vq_desc_load -> vq_walker (rx, tx) -> data path
//   data path -> vq_used -> vq_notify -> interrupt
//                        -> vq_empty -> vq_notify, for those who ask for more than virtio has
//
// Long because it is a list of connections and little else.
//
// Control reads share one DMA client (vq_read_arb) and land in ctl_ram. A protocol error anywhere
// stops all queues and sets DEVICE_NEEDS_RESET.
module virtio_engine
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned NumQueues = 8,
  parameter int unsigned NumVectors = 9,
  parameter int unsigned RxDepth = 128,
  parameter int unsigned TxDepth = 32,
  parameter int unsigned MaxBuffers = 96,  // of one frame
  parameter bit          Lro = 1'b0,       // large receive offload is there
  parameter int unsigned LroContexts = 16,
  parameter bit          LroRelaxed = 1'b1,
  parameter bit          TxEmpty = 1'b1,   // so are ring-empty interrupts, max-age and markers
  parameter bit          Steering = 1'b1,
  parameter bit          Filters = 1'b1,
  parameter bit          TimeSkip = 1'b1,
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned WordW = 16 - $clog2(Lanes),
  localparam int unsigned CtlWordW = $clog2(CtlRamBytes / Lanes)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             fn_rst_i,
  input  logic             pause_i,
  input  logic             halt_i,
  input  logic             busy_i,         // a function reset is going on
  input  logic             swallowed_i,    // a write was lost: bus mastering is off
  input  vq_clear_t        clear_i,
  input  logic [1:0]       clear_area_i,
  input  strap_t           strap_i,
  input  logic [63:0]      time_i,
  output logic             idle_o,
  output logic             drained_o,      // no buffer in flight; register accesses do not count
  output logic             timer_armed_o,  // if idle, it will not be after this many cycles
  output logic [23:0]      timer_left_o,

  output logic             reset_o,
  output logic             queue_reset_o,
  output qid_t             queue_reset_q_o,
  output qid_t             select_q_o,
  input  logic             queue_reset_busy_i,

  input  reg_req_t         reg_req_i,
  output reg_rsp_t         reg_rsp_o,

  output logic             rd_req_valid_o,
  input  logic             rd_req_ready_i,
  output dma_rd_req_t      rd_req_o,
  input  dma_rd_done_t     rd_done_i,
  input  logic [Lanes-1:0] ram_we_i,
  input  dma_dst_e         ram_dst_i,
  input  logic [WordW-1:0] ram_waddr_i,
  input  logic [Lanes-1:0] ram_winc_i,
  input  logic [DataW-1:0] ram_wdata_i,

  output logic             wr_valid_o,
  input  logic             wr_ready_i,
  output ctl_wr_hdr_t      wr_hdr_o,
  output logic             wr_last_o,
  output logic [DataW-1:0] wr_data_o,

  output irq_req_t         irq_o,
  input  logic             irq_ready_i,
  input  logic             msix_enable_i,

  input  logic             rxb_req_valid_i,
  output logic             rxb_req_ready_o,
  input  qid_t             rxb_req_q_i,
  output logic             rxb_seg_valid_o,
  input  logic             rxb_seg_ready_i,
  output vq_seg_t          rxb_seg_o,
  input  logic             rxb_commit_i,
  input  logic             rxb_rewind_i,
  output logic             buf_avail_o,
  input  qid_t             rxb_look_q_i,
  output vq_ptr_t          rxb_count_o,    // buffers at hand in that queue

  input  logic             txb_req_valid_i,
  output logic             txb_req_ready_o,
  input  qid_t             txb_req_q_i,
  output logic             txb_seg_valid_o,
  input  logic             txb_seg_ready_i,
  output vq_seg_t          txb_seg_o,
  input  logic             txb_commit_i,
  output logic             work_valid_o,
  output qid_t             work_q_o,
  input  qid_t             check_q_i,
  output logic             has_work_o,

  input  logic             rx_used_valid_i,
  output logic             rx_used_ready_o,
  input  vq_used_t         rx_used_i,
  input  logic             rx_quiet_i,
  input  logic             tx_used_valid_i,
  output logic             tx_used_ready_o,
  input  vq_used_t         tx_used_i,
  input  logic             tx_quiet_i,
  input  logic             tx_error_i,
  input  qid_t             tx_error_q_i,

  input  frame_event_t     rx_event_i,
  input  frame_event_t     tx_event_i,
  input  logic [12:0]      card_event_i,

  output logic             driver_ok_o,
  output logic             mrg_rxbuf_o,
  output logic             guest_csum_o,
  output logic             guest_tso4_o,
  output logic             guest_tso6_o,
  output tx_offload_t      tx_offload_o,
  output logic [6:0]       pairs_in_use_o,
  // While `lro_flush_o` nothing is opened and what is held is closed; `lro_flushed_i` answers.
  output lro_cfg_t         lro_cfg_o,
  output logic             lro_flush_o,
  input  logic             lro_flushed_i,
  input  lro_event_t       lro_event_i,
  output steer_cfg_t       steer_o,
  output steer_write_t     steer_write_o,
  output filter_cfg_t      filter_o,
  output filter_write_t    filter_write_o,
  output logic             broken_o,       // pulse: DEVICE_NEEDS_RESET was set
  output logic             irq_event_o,
  output qid_t             irq_event_q_o
);
  vq_cfg_t     cfg, cfg_new;
  logic        driver_ok, needs_reset, event_idx, indirect, notif_data;
  logic [15:0] config_vector;

  // ---------------------------------------------------------------- errors
  logic err_avail, err_load, err_rx, err_tx, broken_q;
  qid_t err_avail_q, err_load_q, err_rx_q, err_tx_q;
  // While the DMA engines are halted for a reset, reads fail as a matter of course. A cycle late:
  // blocks that report come to a stop by themselves.
  logic error_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) error_q <= 1'b0;
    else error_q <= (err_avail || err_load || err_rx || err_tx || tx_error_i || swallowed_i) &&
                    !halt_i;
  end
  // One pulse for the first error after a reset.
  wire  broken = error_q && !halt_i && !needs_reset && !broken_q && driver_ok;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) broken_q <= 1'b0;
    else broken_q <= broken;
  end
  wire  run = driver_ok && !needs_reset && !broken && !broken_q;
  assign broken_o = broken && !fn_rst_i;

  // ---------------------------------------------------------------- registers
  // The bus comes from far and goes everywhere here, so a cycle later.
  reg_req_t       req_q;
  always_ff @(posedge clk_i) begin
    req_q       <= reg_req_i;
    req_q.valid <= reg_req_i.valid && !reg_rsp_o.ack && rst_ni;
  end
  reg_req_t [5:0] slave_req;
  reg_rsp_t [5:0] slave_rsp;
  logic [2:0]     slave;
  always_comb begin
    unique casez (req_q.addr[15:12])
      4'h0:    slave = 3'd0;  // common configuration
      4'h1:    slave = 3'd1;  // ISR
      4'h2:    slave = 3'd2;  // device configuration
      4'h3:    slave = 3'd3;  // doorbells
      4'b1???: slave = 3'd4;  // our window
      default: slave = 3'd1;
    endcase
    // Of that, the rows of the transmit queues.
    if (TxEmpty && req_q.addr[15:12] == 4'h9) slave = 3'd5;
  end
  always_comb begin
    for (int s = 0; s < 6; s++) begin
      slave_req[s]       = req_q;
      slave_req[s].valid = req_q.valid && (slave == 3'(s));
    end
  end
  assign reg_rsp_o = slave_rsp[slave];

  logic        t_we_lo, t_we_hi, t_fetch_re, t_reg_re, t_used_re, t_used_ready;
  vq_area_e    t_w_area, t_reg_area, t_fetch_area;
  qid_t        t_w_q, t_reg_q, t_fetch_q, t_used_q;
  logic [31:0] t_wdata;
  logic [63:0] t_shared_addr, t_fetch_addr;
  logic        config_changed, link_q;

  virtio_common #(.NumQueues(NumQueues), .NumVectors(NumVectors), .Lro(Lro)) u_common (
    .clk_i, .rst_ni, .fn_rst_i, .clear_i, .clear_area_i, .strap_i,
    .req_i             (slave_req[0]),
    .rsp_o             (slave_rsp[0]),
    .cfg_o             (cfg_new),
    .table_we_lo_o     (t_we_lo),
    .table_we_hi_o     (t_we_hi),
    .table_w_area_o    (t_w_area),
    .table_w_q_o       (t_w_q),
    .table_wdata_o     (t_wdata),
    .table_re_o        (t_reg_re),
    .table_area_o      (t_reg_area),
    .table_q_o         (t_reg_q),
    .table_addr_i      (t_shared_addr),
    .broken_i          (broken),
    .config_changed_i  (config_changed),
    .reset_o,
    .busy_i,
    .select_q_o        (select_q_o),
    .queue_reset_o, .queue_reset_q_o, .queue_reset_busy_i,
    .driver_ok_o       (driver_ok),
    .needs_reset_o     (needs_reset),
    .event_idx_o       (event_idx),
    .indirect_o        (indirect),
    .notif_data_o      (notif_data),
    .mrg_rxbuf_o,
    .guest_csum_o,
    .guest_tso4_o,
    .guest_tso6_o,
    .tx_offload_o,
    .config_vector_o   (config_vector)
  );
  assign driver_ok_o = driver_ok;

  // A cycle later everywhere: the way from the register bus is long enough.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) cfg <= '0;
    else cfg <= cfg_new;
  end

  virtio_device_cfg u_device (
    .clk_i, .rst_ni, .strap_i, .req_i(slave_req[2]), .rsp_o(slave_rsp[2])
  );

  logic        db_valid, db_ready, db_has_idx, db_idle;
  qid_t        db_q;
  logic [15:0] db_idx;
  virtio_doorbell #(.NumQueues(NumQueues)) u_doorbell (
    .clk_i, .rst_ni, .fn_rst_i, .clear_i,
    .notif_data_i(notif_data),
    .driver_ok_i (driver_ok),
    .req_i       (slave_req[3]),
    .rsp_o       (slave_rsp[3]),
    .db_valid_o  (db_valid),
    .db_ready_i  (db_ready),
    .db_q_o      (db_q),
    .db_has_idx_o(db_has_idx),
    .db_idx_o    (db_idx),
    .idle_o      (db_idle)
  );

  // What a broken or unready device throws away is not counted: it may be a frame a cycle.
  frame_event_t rx_counted, tx_counted;
  always_comb begin
    rx_counted       = rx_event_i;
    tx_counted       = tx_event_i;
    rx_counted.valid = rx_event_i.valid && !halt_i && (!rx_event_i.drop || run);
    tx_counted.valid = tx_event_i.valid && !halt_i && (!tx_event_i.drop || run);
  end

  logic     window_idle, lro_regs_idle, used_settled;
  reg_req_t rx_req, window_req;
  reg_rsp_t rx_rsp, window_rsp;
  if (Lro) begin : g_lro
    regs_lro #(.Contexts(LroContexts), .Relaxed(LroRelaxed)) u_regs (
      .clk_i, .rst_ni, .fn_rst_i,
      .req_i       (slave_req[4]),
      .rsp_o       (slave_rsp[4]),
      .window_req_o(rx_req),
      .window_rsp_i(rx_rsp),
      .lro_cfg_o, .lro_flush_o, .lro_flushed_i(used_settled), .lro_event_i,
      .idle_o      (lro_regs_idle)
    );
  end else begin : g_no_lro
    assign rx_req        = slave_req[4];
    assign slave_rsp[4]  = rx_rsp;
    assign lro_cfg_o     = '0;
    assign lro_flush_o   = 1'b0;
    assign lro_regs_idle = 1'b1;
    logic unused_lro;
    assign unused_lro = ^{used_settled, lro_event_i};
  end

  regs_rx #(.Steering(Steering), .Filters(Filters)) u_rx_regs (
    .clk_i, .rst_ni, .fn_rst_i,
    .req_i         (rx_req),
    .rsp_o         (rx_rsp),
    .window_req_o  (window_req),
    .window_rsp_i  (window_rsp),
    .steer_o, .steer_write_o, .filter_o, .filter_write_o
  );

  regs_window #(
    .DataW(DataW), .NumQueues(NumQueues), .Lro(Lro), .TxEmpty(TxEmpty), .Steering(Steering),
    .Filters(Filters)
  ) u_window (
    .clk_i, .rst_ni, .fn_rst_i,
    .time_i,
    .req_i         (window_req),
    .rsp_o         (window_rsp),
    .pairs_in_use_o,
    .rx_event_i    (rx_counted),
    .tx_event_i    (tx_counted),
    .irq_event_i   (irq_event_o),
    .irq_q_i       (irq_event_q_o),
    .card_event_i,
    .idle_o        (window_idle)
  );

  // ---------------------------------------------------------------- configuration changes, ISR
  logic       cfg_irq_q, isr_ack_q, isr_set;
  logic [1:0] isr_q, isr_rdata_q;
  irq_req_t   vq_irq;
  logic       vq_irq_ready;
  qid_t       vq_irq_q;
  assign config_changed = (strap_i.link_up != link_q) && !fn_rst_i;
  wire   isr_read = slave_req[1].valid && !isr_ack_q && !slave_req[1].write &&
                    (req_q.addr[15:2] == 14'h400) && req_q.be[0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      link_q      <= 1'b0;
      cfg_irq_q   <= 1'b0;
      isr_q       <= '0;
      isr_rdata_q <= '0;
      isr_ack_q   <= 1'b0;
    end else begin
      link_q      <= strap_i.link_up;
      isr_ack_q   <= slave_req[1].valid && !isr_ack_q;
      isr_rdata_q <= isr_read ? isr_q : '0;
      if (fn_rst_i) begin
        cfg_irq_q <= 1'b0;
        isr_q     <= '0;
      end else begin
        if ((config_changed || broken) && driver_ok) cfg_irq_q <= 1'b1;
        else if (cfg_irq_q && !vq_irq.valid && vq_irq_ready) cfg_irq_q <= 1'b0;
        // Reading clears what was read; MSI-X drivers use it for configuration changes only.
        isr_q[0] <= (isr_q[0] && !isr_read) || (isr_set && !msix_enable_i);
        isr_q[1] <= (isr_q[1] && !isr_read) || ((config_changed || broken) && driver_ok);
      end
    end
  end
  assign slave_rsp[1] = '{ack: isr_ack_q, rdata: {30'd0, isr_rdata_q}};

  // The state machines there and here do not see each other.
  prim_slice #(.Width(16)) u_irq (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .in_valid_i(vq_irq.valid || cfg_irq_q), .in_ready_o(vq_irq_ready),
    .in_data_i(vq_irq.valid ? vq_irq.vector : config_vector),
    .out_valid_o(irq_o.valid), .out_ready_i(irq_ready_i), .out_data_o(irq_o.vector)
  );
  assign irq_event_o   = vq_irq.valid && vq_irq_ready;
  assign irq_event_q_o = vq_irq_q;

  // ---------------------------------------------------------------- reading rings
  vq_rd_t [4:0] rd;
  logic   [4:0] rd_valid, rd_ready;
  logic         arb_idle;
  vq_read_arb #(.Clients(5)) u_read_arb (
    .clk_i, .rst_ni, .fn_rst_i,
    .valid_i     (rd_valid),
    .ready_o     (rd_ready),
    .req_i       (rd),
    .table_re_o  (t_fetch_re),
    .table_area_o(t_fetch_area),
    .table_q_o   (t_fetch_q),
    .table_addr_i(t_fetch_addr),
    .out_valid_o (rd_req_valid_o),
    .out_ready_i (rd_req_ready_i),
    .out_o       (rd_req_o),
    .idle_o      (arb_idle)
  );

  vq_table #(.NumQueues(NumQueues)) u_table (
    .clk_i,
    .we_lo_i     (t_we_lo),
    .we_hi_i     (t_we_hi),
    .w_area_i    (t_w_area),
    .w_q_i       (t_w_q),
    .wdata_i     (t_wdata),
    .fetch_re_i  (t_fetch_re),
    .fetch_area_i(t_fetch_area),
    .fetch_q_i   (t_fetch_q),
    .fetch_addr_o(t_fetch_addr),
    .reg_re_i     (t_reg_re),
    .reg_area_i   (t_reg_area),
    .reg_q_i      (t_reg_q),
    .used_re_i    (t_used_re),
    .used_ready_o (t_used_ready),
    .used_q_i     (t_used_q),
    .shared_addr_o(t_shared_addr)
  );

  // Readers, most urgent first. Heads come last: they take every cycle that is left.
  localparam int unsigned RdFetch = 0, RdChainRx = 1, RdChainTx = 2, RdIdx = 3, RdEvent = 4,
                          RdLoad = 5;
  logic [5:0]      ram_req, ram_gnt, ram_valid;
  logic [5:0][8:0] ram_addr;
  logic [63:0]     ram_data;
  ctl_ram #(.DataW(DataW), .Readers(6)) u_ctl_ram (
    .clk_i, .rst_ni,
    .we_i   ((ram_dst_i == DstCtl) ? ram_we_i : '0),
    .waddr_i(ram_waddr_i[CtlWordW-1:0]),
    .winc_i (ram_winc_i),
    .wdata_i(ram_wdata_i),
    .req_i  (ram_req),
    .addr_i (ram_addr),
    .gnt_o  (ram_gnt),
    .valid_o(ram_valid),
    .data_o (ram_data)
  );

  logic        credit_valid, credit_ready, crx_valid, crx_ready, ctx_valid, ctx_ready;
  qid_t        credit_q, crx_q, ctx_q, look_q;
  vq_ptr_t     commit_rx, commit_tx;
  logic [15:0] used_idx;
  assign credit_valid = crx_valid || ctx_valid;
  assign credit_q     = crx_valid ? crx_q : ctx_q;
  assign crx_ready    = credit_ready;
  assign ctx_ready    = credit_ready && !crx_valid;

  logic        ask_valid, ask_ready, ans_valid, tell_valid, tell_ready;
  qid_t        ask_q, ans_q, tell_q;
  logic [15:0] ans_idx;
  logic        avail_idle, avail_drained, job_valid, job_ready, slot_free, ev_valid, ev_ready;
  vq_job_t     job;
  vq_guess_t   job_guess;
  logic        guess_on;
  logic [10:0] guess_shift;
  qid_t        ev_q;
  logic [15:0] ev_idx;
  vq_avail #(
    .NumQueues(NumQueues), .RxDepth(RxDepth), .TxDepth(TxDepth), .RxEnough(MaxBuffers),
    .TxEnough(TxDepth / 2)
  ) u_avail (
    .clk_i, .rst_ni, .fn_rst_i, .clear_i,
    .cfg_i         (cfg),
    .event_idx_i   (event_idx),
    .run_i         (run),
    .pause_i,
    .idle_o        (avail_idle),
    .drained_o     (avail_drained),
    .db_valid_i    (db_valid),
    .db_ready_o    (db_ready),
    .db_q_i        (db_q),
    .db_has_idx_i  (db_has_idx),
    .db_idx_i      (db_idx),
    .ask_valid_i   (ask_valid),
    .ask_ready_o   (ask_ready),
    .ask_q_i       (ask_q),
    .ans_valid_o   (ans_valid),
    .ans_q_o       (ans_q),
    .ans_idx_o     (ans_idx),
    .credit_valid_i(credit_valid),
    .credit_ready_o(credit_ready),
    .credit_q_i    (credit_q),
    .look_q_o      (look_q),
    .commit_i      (look_q[0] ? commit_tx : commit_rx),
    .used_idx_i    (used_idx),
    .rd_valid_o    (rd_valid[0]),
    .rd_ready_i    (rd_ready[0]),
    .rd_o          (rd[0]),
    .done_i        (rd_done_i),
    .ram_req_o     (ram_req[RdIdx]),
    .ram_addr_o    (ram_addr[RdIdx]),
    .ram_gnt_i     (ram_gnt[RdIdx]),
    .ram_valid_i   (ram_valid[RdIdx]),
    .ram_data_i    (ram_data),
    .event_valid_o (ev_valid),
    .event_ready_i (ev_ready),
    .event_q_o     (ev_q),
    .event_idx_o   (ev_idx),
    .job_valid_o   (job_valid),
    .job_ready_i   (job_ready),
    .job_o         (job),
    .job_guess_o   (job_guess),
    .guess_on_i    (guess_on),
    .guess_shift_i (guess_shift),
    .slot_free_i   (slot_free),
    .error_o       (err_avail),
    .error_q_o     (err_avail_q)
  );

  logic       ld_valid, ld_ready, ld_addr1, ld_bad;
  vq_job_t    ld_job;
  logic [4:0] ld_reads;
  vq_desc_fetch #(.NumQueues(NumQueues)) u_desc_fetch (
    .clk_i, .rst_ni, .fn_rst_i, .clear_i,
    .job_valid_i (job_valid),
    .job_ready_o (job_ready),
    .job_i       (job),
    .job_guess_i (job_guess),
    .look_q_i    (look_q),
    .look_on_o   (guess_on),
    .look_shift_o(guess_shift),
    .done_i      (rd_done_i),
    .ram_req_o   (ram_req[RdFetch]),
    .ram_addr_o  (ram_addr[RdFetch]),
    .ram_gnt_i   (ram_gnt[RdFetch]),
    .ram_valid_i (ram_valid[RdFetch]),
    .ram_data_i  (ram_data),
    .rd_valid_o  (rd_valid[1]),
    .rd_ready_i  (rd_ready[1]),
    .rd_o        (rd[1]),
    .load_valid_o(ld_valid),
    .load_ready_i(ld_ready),
    .load_job_o  (ld_job),
    .load_reads_o(ld_reads),
    .load_addr1_o(ld_addr1),
    .load_bad_o  (ld_bad)
  );

  logic     head_valid, load_idle;
  qid_t     head_q;
  vq_head_t head;
  vq_desc_load #(.Markers(TxEmpty)) u_desc_load (
    .clk_i, .rst_ni, .fn_rst_i,
    .load_valid_i(ld_valid),
    .load_ready_o(ld_ready),
    .load_job_i  (ld_job),
    .load_reads_i(ld_reads),
    .load_addr1_i(ld_addr1),
    .load_bad_i  (ld_bad),
    .done_i      (rd_done_i),
    .ram_req_o   (ram_req[RdLoad]),
    .ram_addr_o  (ram_addr[RdLoad]),
    .ram_gnt_i   (ram_gnt[RdLoad]),
    .ram_valid_i (ram_valid[RdLoad]),
    .ram_data_i  (ram_data),
    .head_valid_o(head_valid),
    .head_q_o    (head_q),
    .head_o      (head),
    .slot_free_o (slot_free),
    .error_o     (err_load),
    .error_q_o   (err_load_q),
    .idle_o      (load_idle)
  );

  logic walk_rx_idle, walk_tx_idle, rx_has;
  vq_ptr_t tx_count;
  qid_t rx_work_q;
  vq_walker #(.NumQueues(NumQueues), .Depth(RxDepth), .IsRx(1'b1)) u_walk_rx (
    .clk_i, .rst_ni, .fn_rst_i, .clear_i,
    .cfg_i          (cfg),
    .indirect_i     (indirect),
    .run_i          (run),
    .head_valid_i   (head_valid),
    .head_q_i       (head_q),
    .head_i         (head),
    .buf_req_valid_i(rxb_req_valid_i),
    .buf_req_ready_o(rxb_req_ready_o),
    .buf_req_q_i    (rxb_req_q_i),
    .seg_valid_o    (rxb_seg_valid_o),
    .seg_ready_i    (rxb_seg_ready_i),
    .seg_o          (rxb_seg_o),
    .commit_i       (rxb_commit_i),
    .rewind_i       (rxb_rewind_i),
    .work_valid_o   (buf_avail_o),
    .work_q_o       (rx_work_q),
    .check_q_i      (rxb_look_q_i),
    .check_has_o    (rx_has),
    .check_count_o  (rxb_count_o),
    .credit_valid_o (crx_valid),
    .credit_ready_i (crx_ready),
    .credit_q_o     (crx_q),
    .look_q_i       (look_q),
    .look_commit_o  (commit_rx),
    .rd_valid_o     (rd_valid[2]),
    .rd_ready_i     (rd_ready[2]),
    .rd_o           (rd[2]),
    .done_i         (rd_done_i),
    .ram_req_o      (ram_req[RdChainRx]),
    .ram_addr_o     (ram_addr[RdChainRx]),
    .ram_gnt_i      (ram_gnt[RdChainRx]),
    .ram_valid_i    (ram_valid[RdChainRx]),
    .ram_data_i     (ram_data),
    .error_o        (err_rx),
    .error_q_o      (err_rx_q),
    .idle_o         (walk_rx_idle)
  );

  vq_walker #(.NumQueues(NumQueues), .Depth(TxDepth), .IsRx(1'b0)) u_walk_tx (
    .clk_i, .rst_ni, .fn_rst_i, .clear_i,
    .cfg_i          (cfg),
    .indirect_i     (indirect),
    .run_i          (run),
    .head_valid_i   (head_valid),
    .head_q_i       (head_q),
    .head_i         (head),
    .buf_req_valid_i(txb_req_valid_i),
    .buf_req_ready_o(txb_req_ready_o),
    .buf_req_q_i    (txb_req_q_i),
    .seg_valid_o    (txb_seg_valid_o),
    .seg_ready_i    (txb_seg_ready_i),
    .seg_o          (txb_seg_o),
    .commit_i       (txb_commit_i),
    .rewind_i       (1'b0),
    .work_valid_o,
    .work_q_o,
    .check_q_i,
    .check_has_o    (has_work_o),
    .check_count_o  (tx_count),
    .credit_valid_o (ctx_valid),
    .credit_ready_i (ctx_ready),
    .credit_q_o     (ctx_q),
    .look_q_i       (look_q),
    .look_commit_o  (commit_tx),
    .rd_valid_o     (rd_valid[3]),
    .rd_ready_i     (rd_ready[3]),
    .rd_o           (rd[3]),
    .done_i         (rd_done_i),
    .ram_req_o      (ram_req[RdChainTx]),
    .ram_addr_o     (ram_addr[RdChainTx]),
    .ram_gnt_i      (ram_gnt[RdChainTx]),
    .ram_valid_i    (ram_valid[RdChainTx]),
    .ram_data_i     (ram_data),
    .error_o        (err_tx),
    .error_q_o      (err_tx_q),
    .idle_o         (walk_tx_idle)
  );

  // ---------------------------------------------------------------- used rings, notifications
  logic        used_idle, notify_idle, pub_valid, pub_ready, pub_marker;
  logic        told_valid, told_asked, told_sent;
  logic [7:0]  pub_age;
  qid_t        pub_q;
  logic [15:0] pub_idx;
  // The data path does not see how vq_used makes up its mind.
  logic     rxu_valid, rxu_ready, txu_valid, txu_ready;
  vq_used_t rxu, txu;
  prim_slice #(.Width($bits(vq_used_t))) u_rx_used (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .in_valid_i(rx_used_valid_i), .in_ready_o(rx_used_ready_o), .in_data_i(rx_used_i),
    .out_valid_o(rxu_valid), .out_ready_i(rxu_ready), .out_data_o(rxu)
  );
  prim_slice #(.Width($bits(vq_used_t))) u_tx_used (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .in_valid_i(tx_used_valid_i), .in_ready_o(tx_used_ready_o), .in_data_i(tx_used_i),
    .out_valid_o(txu_valid), .out_ready_i(txu_ready), .out_data_o(txu)
  );
  vq_used #(.DataW(DataW), .NumQueues(NumQueues)) u_used (
    .clk_i, .rst_ni, .fn_rst_i, .clear_i,
    .cfg_i        (cfg),
    .rx_valid_i   (rxu_valid),
    .rx_ready_o   (rxu_ready),
    .rx_i         (rxu),
    .rx_quiet_i,
    .tx_valid_i   (txu_valid),
    .tx_ready_o   (txu_ready),
    .tx_i         (txu),
    .tx_quiet_i,
    .event_valid_i(ev_valid),
    .event_ready_o(ev_ready),
    .event_q_i    (ev_q),
    .event_idx_i  (ev_idx),
    .table_re_o   (t_used_re),
    .table_q_o    (t_used_q),
    .table_ready_i(t_used_ready),
    .table_addr_i (t_shared_addr),
    .wr_valid_o, .wr_ready_i, .wr_hdr_o, .wr_last_o, .wr_data_o,
    .pub_valid_o  (pub_valid),
    .pub_ready_i  (pub_ready),
    .pub_q_o      (pub_q),
    .pub_idx_o    (pub_idx),
    .pub_marker_o (pub_marker),
    .pub_age_o    (pub_age),
    .look_q_i     (look_q),
    .look_used_o  (used_idx),
    .settle_i     (lro_flush_o && lro_flushed_i),
    .settled_o    (used_settled),
    .idle_o       (used_idle)
  );

  vq_notify #(.NumQueues(NumQueues)) u_notify (
    .clk_i, .rst_ni, .fn_rst_i, .clear_i,
    .cfg_i         (cfg),
    .event_idx_i   (event_idx),
    .msix_enabled_i(msix_enable_i),
    .pub_valid_i   (pub_valid),
    .pub_ready_o   (pub_ready),
    .pub_q_i       (pub_q),
    .pub_idx_i     (pub_idx),
    .rd_valid_o    (rd_valid[4]),
    .rd_ready_i    (rd_ready[4]),
    .rd_o          (rd[4]),
    .done_i        (rd_done_i),
    .ram_req_o     (ram_req[RdEvent]),
    .ram_addr_o    (ram_addr[RdEvent]),
    .ram_gnt_i     (ram_gnt[RdEvent]),
    .ram_valid_i   (ram_valid[RdEvent]),
    .ram_data_i    (ram_data),
    .tell_valid_i  (tell_valid),
    .tell_ready_o  (tell_ready),
    .tell_q_i      (tell_q),
    .told_valid_o  (told_valid),
    .told_asked_o  (told_asked),
    .told_sent_o   (told_sent),
    .irq_o         (vq_irq),
    .irq_ready_i   (vq_irq_ready),
    .irq_q_o       (vq_irq_q),
    .isr_set_o     (isr_set),
    .idle_o        (notify_idle)
  );

  logic empty_idle;
  if (TxEmpty) begin : g_empty
    vq_empty #(.NumQueues(NumQueues), .TimeSkip(TimeSkip)) u_empty (
      .clk_i, .rst_ni, .fn_rst_i, .clear_i, .clear_area_i,
      .time_i       (time_i[23:0]),
      .req_i        (slave_req[5]),
      .rsp_o        (slave_rsp[5]),
      .pub_valid_i  (pub_valid),
      .pub_ready_i  (pub_ready),
      .pub_q_i      (pub_q),
      .pub_idx_i    (pub_idx),
      .pub_marker_i (pub_marker),
      .pub_age_i    (pub_age),
      .ask_valid_o  (ask_valid),
      .ask_ready_i  (ask_ready),
      .ask_q_o      (ask_q),
      .ans_valid_i  (ans_valid),
      .ans_q_i      (ans_q),
      .ans_idx_i    (ans_idx),
      .tell_valid_o (tell_valid),
      .tell_ready_i (tell_ready),
      .tell_q_o     (tell_q),
      .told_valid_i (told_valid),
      .told_q_i     (vq_irq_q),
      .told_asked_i (told_asked),
      .told_sent_i  (told_sent),
      .idle_o       (empty_idle),
      .timer_armed_o, .timer_left_o
    );
  end else begin : g_no_empty
    assign {ask_valid, ask_q, tell_valid, tell_q, timer_armed_o, timer_left_o} = '0;
    assign slave_rsp[5] = '0;
    assign empty_idle   = 1'b1;
    logic unused_empty;
    assign unused_empty = ^{pub_marker, pub_age, ask_ready, ans_valid, ans_q, ans_idx, tell_ready,
                            told_valid, told_asked, told_sent, slave_req[5]};
  end

  assign drained_o = avail_drained && load_idle && arb_idle && walk_rx_idle && walk_tx_idle &&
                     used_idle && notify_idle && !irq_o.valid;
  assign idle_o    = drained_o && avail_idle && db_idle && window_idle && lro_regs_idle &&
                     empty_idle && !cfg_irq_q && !reg_req_i.valid && !req_q.valid;

  // Which queue broke is seen in the waveform; software resets the whole device.
  logic unused;
  assign unused = ^{err_avail_q, err_load_q, err_rx_q, err_tx_q, tx_error_q_i, rx_has, rx_work_q,
                    tx_count, ram_waddr_i, clear_i};
endmodule

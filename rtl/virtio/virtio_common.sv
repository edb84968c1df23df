// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Common configuration structure (virtio 1.2, "Common configuration structure layout"): features,
// status, queue set-up. Every access is answered in two cycles, in any width.
//
// Of the driver's features only bits that exist here are kept; a write of any other is remembered
// as a bad choice, so that FEATURES_OK is refused.
//
// Invariants: features are fixed once FEATURES_OK is set; queues are enabled only after that; what
// is enabled cannot be changed except by a reset. A write of 0 to the status asks for a reset;
// the status reads 0 when it is done.
module virtio_common
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned NumQueues = 8,
  parameter int unsigned NumVectors = 9,
  parameter bit          Lro = 1'b0,    // GUEST_TSO4 and GUEST_TSO6 exist
  localparam int unsigned QW = $clog2(NumQueues)
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        fn_rst_i,
  input  vq_clear_t   clear_i,
  input  logic [1:0]  clear_area_i,
  input  strap_t      strap_i,

  input  reg_req_t    req_i,
  output reg_rsp_t    rsp_o,

  output vq_cfg_t     cfg_o,
  output logic        table_we_lo_o,
  output logic        table_we_hi_o,
  output vq_area_e    table_w_area_o,
  output qid_t        table_w_q_o,
  output logic [31:0] table_wdata_o,
  output logic        table_re_o,
  output vq_area_e    table_area_o,
  output qid_t        table_q_o,
  input  logic [63:0] table_addr_i,     // one cycle later

  input  logic        broken_i,         // pulse: DEVICE_NEEDS_RESET
  input  logic        config_changed_i, // pulse
  output logic        reset_o,          // pulse: device reset asked for
  output logic        queue_reset_o,    // pulse: reset of queue_reset_q_o
  output qid_t        queue_reset_q_o,
  input  logic        busy_i,           // the device is being reset
  output qid_t        select_q_o,
  input  logic        queue_reset_busy_i, // of the selected queue

  output logic        driver_ok_o,
  output logic        needs_reset_o,
  output logic        event_idx_o,
  output logic        indirect_o,
  output logic        notif_data_o,
  output logic        mrg_rxbuf_o,
  output logic        guest_csum_o,
  output logic        guest_tso4_o,
  output logic        guest_tso6_o,
  output tx_offload_t tx_offload_o,
  output logic [15:0] config_vector_o
);
  // Feature bits (virtio 1.2, "Reserved Feature Bits" and "Feature bits" of the network device).
  localparam int unsigned FCsum = 0, FGuestCsum = 1, FMtu = 3, FMac = 5, FGuestTso4 = 7,
                          FGuestTso6 = 8, FTso4 = 11, FTso6 = 12, FEcn = 13, FMrgRxbuf = 15,
                          FStatus = 16, FIndirect = 28, FEventIdx = 29, FVersion1 = 32,
                          FAccess = 33, FOrder = 36, FNotifData = 38, FRingReset = 40,
                          FUso = 56, FSpeedDuplex = 63;
  localparam logic [63:0] Implemented =
      (64'd1 << FCsum) | (64'd1 << FGuestCsum) | (64'd1 << FMtu) | (64'd1 << FMac) |
      (64'd1 << FTso4) | (64'd1 << FTso6) | (64'd1 << FEcn) | (64'd1 << FMrgRxbuf) |
      (64'd1 << FStatus) | (64'd1 << FIndirect) | (64'd1 << FEventIdx) | (64'd1 << FVersion1) |
      (64'd1 << FAccess) | (64'd1 << FOrder) | (64'd1 << FNotifData) | (64'd1 << FRingReset) |
      (64'd1 << FUso) | (64'd1 << FSpeedDuplex) |
      (64'(Lro) << FGuestTso4) | (64'(Lro) << FGuestTso6);
  // Status bits (virtio 1.2, "Device Status Field").
  localparam int unsigned SDriverOk = 2, SFeaturesOk = 3, SNeedsReset = 6;

  // What depends on what: virtio 1.3, "Feature bit requirements" of the network device. Neither
  // offered nor accepted otherwise.
  logic [63:0] offered;
  always_comb begin
    offered = strap_i.features & Implemented;
    if (strap_i.mtu == '0) offered[FMtu] = 1'b0;
    if (!offered[FCsum]) {offered[FTso4], offered[FTso6], offered[FUso]} = 3'b000;
    if (!offered[FTso4] && !offered[FTso6]) offered[FEcn] = 1'b0;
    if (!offered[FGuestCsum]) {offered[FGuestTso4], offered[FGuestTso6]} = 2'b00;
  end

  logic [31:0] dev_select_q, drv_select_q;
  logic [63:0] driver_q;           // bits outside Implemented are constant
  logic [7:0]  foreign_q;          // by byte: holds a bit that is not offered
  logic [7:0]  status_q, generation_q;
  vq_vector_t  cfg_vector_q;
  logic [15:0] select_q;
  logic        ack_q;
  logic [31:0] rdata_q;

  wire         sel_ok = (select_q < 16'(NumQueues));
  wire [QW-1:0] sq    = select_q[QW-1:0];
  qid_t        sq7;
  assign sq7 = qid_t'(sq);

  logic        we_size, enable_rd;
  ring_t       size_w, size_rd;     // log2
  vq_vector_t  vector_rd;
  prim_lutram #(.Width(4), .Depth(NumQueues)) u_size (
    .clk_i, .we_i(we_size), .waddr_i(cfg_o.q[QW-1:0]), .wdata_i(size_w), .raddr_i(sq),
    .rdata_o(size_rd));
  prim_lutram #(.Width(1), .Depth(NumQueues)) u_enable (
    .clk_i, .we_i(cfg_o.we_ring), .waddr_i(cfg_o.q[QW-1:0]), .wdata_i(!clear_i.valid),
    .raddr_i(sq), .rdata_o(enable_rd));
  prim_lutram #(.Width($bits(vq_vector_t)), .Depth(NumQueues)) u_vector (
    .clk_i, .we_i(cfg_o.we_vector), .waddr_i(cfg_o.q[QW-1:0]), .wdata_i(cfg_o.vector),
    .raddr_i(sq), .rdata_o(vector_rd));

  // While queues are being cleared their registers cannot be written.
  wire        go    = req_i.valid && !ack_q && !clear_i.valid;
  wire        wr    = go && req_i.write;
  wire [5:0]  dw    = req_i.addr[7:2];
  wire        in_range = (req_i.addr[11:8] == '0);
  wire [31:0] wd    = req_i.wdata;
  wire [3:0]  be    = req_i.be;

  assign table_re_o = go && !req_i.write && dw[5:3] == 3'd1;
  assign table_q_o  = sq7;
  always_comb begin
    unique case (dw)
      6'd8, 6'd9:   table_area_o = AreaDesc;
      6'd10, 6'd11: table_area_o = AreaDriver;
      default:      table_area_o = AreaDevice;
    endcase
  end

  // ---------------------------------------------------------------- reads
  function automatic logic [15:0] vector_as_read(input vq_vector_t v);
    vector_as_read = {{8{v == NoVector}}, v};
  endfunction
  logic [31:0] rdata;
  always_comb begin
    rdata = '0;
    unique case (dw)
      6'd0: rdata = dev_select_q;
      6'd1: rdata = (dev_select_q == 32'd0) ? offered[31:0] :
                    (dev_select_q == 32'd1) ? offered[63:32] : '0;
      6'd2: rdata = drv_select_q;
      6'd3: rdata = (drv_select_q == 32'd0) ? driver_q[31:0] :
                    (drv_select_q == 32'd1) ? driver_q[63:32] : '0;
      6'd4: rdata = {16'(NumQueues), vector_as_read(cfg_vector_q)};
      // Not 0 before a reset is through with all DMA.
      6'd5: rdata = {select_q, generation_q, status_q | {7'd0, busy_i}};
      6'd6: rdata = {sel_ok ? vector_as_read(vector_rd) : 16'hffff,
                     sel_ok ? {4'd0, ring_size(size_rd)} : 16'd0};
      6'd7: rdata = {select_q, 15'd0, sel_ok && enable_rd};
      // queue_notify_data equals the queue's number; queue_reset reads 1 while it is going on.
      6'd14: rdata = {15'd0, sel_ok && queue_reset_busy_i, select_q};
      default: rdata = '0;
    endcase
  end

  // ---------------------------------------------------------------- writes
  wire features_ok = status_q[SFeaturesOk];
  wire may_set     = sel_ok && !enable_rd && in_range;
  wire new_status  = wr && in_range && dw == 6'd5 && be[0];
  // The place of the one bit that is set; what has more does not equal the power it stands for.
  function automatic ring_t log2_of(input logic [15:0] size);
    log2_of = '0;
    for (int i = 0; i < 16; i++) if (size[i]) log2_of |= 4'(i);
  endfunction
  ring_t wd_log2, strap_log2;
  assign wd_log2    = log2_of(wd[15:0]);
  assign strap_log2 = log2_of(strap_i.queue_size);
  wire size_ok      = (wd[15:0] == 16'd1 << wd_log2) && (wd_log2 <= strap_log2);
  function automatic vq_vector_t vector_of(input logic [15:0] v);
    vector_of = (v[15:8] == '0 && v[7:0] < 8'(NumVectors)) ? v[7:0] : NoVector;
  endfunction

  wire        enable_w = wr && may_set && dw == 6'd7 && be[0] && wd[0] && features_ok;
  assign queue_reset_o   = wr && sel_ok && in_range && dw == 6'd14 && be[2] && wd[16] &&
                           driver_q[FRingReset] && features_ok;
  assign queue_reset_q_o = sq7;
  assign select_q_o      = sq7;
  assign reset_o         = new_status && wd[7:0] == '0;

  assign we_size = clear_i.valid ||
                   (wr && may_set && dw == 6'd6 && be[1:0] == 2'b11 && size_ok);
  assign size_w  = clear_i.valid ? strap_log2 : wd_log2;
  always_comb begin
    if (clear_i.valid) begin
      cfg_o = '{we_ring: 1'b1, we_vector: 1'b1, q: clear_i.q, ring: RingOff, vector: NoVector};
    end else begin
      cfg_o = '{we_ring: enable_w,
                we_vector: wr && sel_ok && in_range && dw == 6'd6 && be[3:2] == 2'b11,
                q: sq7, ring: size_rd, vector: vector_of(wd[31:16])};
    end
  end

  wire area_w = wr && may_set && dw >= 6'd8 && dw <= 6'd13 && be == 4'hf;
  assign table_we_lo_o  = (area_w && !dw[0]) || clear_i.valid;
  assign table_we_hi_o  = (area_w && dw[0]) || clear_i.valid;
  assign table_w_area_o = clear_i.valid ? vq_area_e'(clear_area_i) : table_area_o;
  assign table_w_q_o    = clear_i.valid ? clear_i.q : sq7;
  // Alignments that the areas of a split virtqueue have by the specification.
  logic [31:0] aligned;
  always_comb begin
    aligned = wd;
    unique case (dw)
      6'd8:    aligned[3:0] = '0;
      6'd10:   aligned[0]   = '0;
      6'd12:   aligned[1:0] = '0;
      default: ;
    endcase
  end
  assign table_wdata_o  = clear_i.valid ? '0 : aligned;

  wire tso    = driver_q[FTso4] || driver_q[FTso6];
  wire merge  = driver_q[FGuestTso4] || driver_q[FGuestTso6];
  wire sound  = (driver_q[FCsum] || !(tso || driver_q[FUso])) && (tso || !driver_q[FEcn]) &&
                (driver_q[FGuestCsum] || !merge);
  wire subset = (foreign_q == '0) && driver_q[FVersion1] && sound;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ack_q        <= 1'b0;
      dev_select_q <= '0;
      drv_select_q <= '0;
      driver_q     <= '0;
      foreign_q    <= '0;
      status_q     <= '0;
      generation_q <= '0;
      cfg_vector_q <= NoVector;
      select_q     <= '0;
    end else begin
      ack_q <= go;
      if (config_changed_i) generation_q <= generation_q + 8'd1;
      if (fn_rst_i) begin
        dev_select_q <= '0;
        drv_select_q <= '0;
        driver_q     <= '0;
        foreign_q    <= '0;
        status_q     <= '0;
        cfg_vector_q <= NoVector;
        select_q     <= '0;
      end else begin
        if (wr && in_range) begin
          unique case (dw)
            6'd0: for (int b = 0; b < 4; b++) if (be[b]) dev_select_q[8*b +: 8] <= wd[8*b +: 8];
            6'd2: for (int b = 0; b < 4; b++) if (be[b]) drv_select_q[8*b +: 8] <= wd[8*b +: 8];
            6'd3: if (!features_ok) begin
              for (int b = 0; b < 8; b++) begin
                if (be[b % 4] && drv_select_q == 32'(b / 4)) begin
                  driver_q[8*b +: 8] <= wd[8*(b % 4) +: 8] & Implemented[8*b +: 8];
                  foreign_q[b]       <= |(wd[8*(b % 4) +: 8] & ~offered[8*b +: 8]);
                end
              end
            end
            6'd4: if (be[1:0] == 2'b11) cfg_vector_q <= vector_of(wd[15:0]);
            6'd5: begin
              if (be[0] && wd[7:0] != '0) begin
                // Bits can only be added; FEATURES_OK only for a sound choice of features.
                status_q <= status_q | (wd[7:0] & 8'h87) |
                            ((wd[SFeaturesOk] && subset) ? 8'h08 : 8'h00);
              end
              if (be[3:2] == 2'b11) select_q <= wd[31:16];
            end
            default: ;
          endcase
        end
        if (broken_i) status_q[SNeedsReset] <= 1'b1;
      end
    end
  end

  // The addresses come out of their RAM with the acknowledgement.
  logic in_table_q, high_q;
  always_ff @(posedge clk_i) begin
    rdata_q    <= in_range ? rdata : '0;
    in_table_q <= in_range && sel_ok && dw >= 6'd8 && dw <= 6'd13;
    high_q     <= dw[0];
  end
  wire [31:0] from_table = high_q ? table_addr_i[63:32] : table_addr_i[31:0];

  assign rsp_o           = '{ack: ack_q, rdata: in_table_q ? from_table : rdata_q};
  assign driver_ok_o     = status_q[SDriverOk] && features_ok;
  assign needs_reset_o   = status_q[SNeedsReset];
  assign event_idx_o     = driver_q[FEventIdx];
  assign indirect_o      = driver_q[FIndirect];
  assign notif_data_o    = driver_q[FNotifData];
  assign mrg_rxbuf_o     = driver_q[FMrgRxbuf];
  assign guest_csum_o    = driver_q[FGuestCsum];
  assign guest_tso4_o    = driver_q[FGuestTso4] && driver_q[FGuestCsum];
  assign guest_tso6_o    = driver_q[FGuestTso6] && driver_q[FGuestCsum];
  assign tx_offload_o    = '{csum: driver_q[FCsum], tso4: driver_q[FTso4],
                             tso6: driver_q[FTso6], ecn: driver_q[FEcn], uso: driver_q[FUso]};
  assign config_vector_o = vector_as_read(cfg_vector_q);

  logic unused;
  assign unused = ^{req_i.addr, strap_i};
endmodule

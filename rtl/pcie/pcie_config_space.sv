// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Configuration space of the one function: type 0 header with a 64-bit BAR of 64 KiB, power
// management (D0, D3hot), MSI-X, PCI Express endpoint with function level reset, the five virtio
// structures, and a DVSEC that names our own register window.
//
// One access at a time: `wr_i` writes in that cycle, read data is that of `addr_i` a cycle before.
// Function level reset, and leaving D3hot (No_Soft_Reset is 0), put every register back but the
// payload size, the link control and the captured bus number; the data path is reset by whoever
// takes `flr_o` and `d3_exit_o`.
//
// Access to BAR0 through the virtio PCI-config structure is done by the caller: `win_hit_o` says
// that `addr_i` is its data register, and where in the BAR it points.
`include "ferronic_assert.svh"
module pcie_config_space
  import pcie_pkg::*;
#(
  parameter int unsigned NumVectors = 9,
  parameter bit ExtTags = 1'b0
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        wr_i,
  input  logic [11:2] addr_i,
  input  logic [3:0]  be_i,
  input  logic [31:0] wdata_i,
  output logic [31:0] rdata_o,

  output logic        win_hit_o,
  output logic        win_valid_o,   // the window is set to something that can be accessed
  output logic [15:0] win_addr_o,
  output logic [3:0]  win_be_o,      // lanes of the DW at win_addr_o

  // Errors seen, for the status registers.
  input  logic        ev_rx_ur_i,    // a read of ours was answered by UR
  input  logic        ev_rx_ca_i,
  input  logic        ev_poisoned_i,
  input  logic        ev_error_i,    // any other error seen by the function
  input  logic        ev_tx_ur_i,    // we answered (or dropped) something unsupported
  input  logic        ev_tx_ca_i,    // we answered CA
  input  logic        pending_i,     // reads outstanding

  output logic        mem_enable_o,
  output logic [63:16] bar_o,
  output logic        bus_master_o,
  output logic [12:0] max_payload_o, // bytes
  output logic [12:0] max_read_o,
  output logic        ext_tag_o,
  output logic        timeout_off_o,
  output logic        msix_enable_o,
  output logic        msix_mask_o,
  output logic        d3hot_o,
  output logic        flr_o,
  output logic        d3_exit_o
);
  // Capability list.
  localparam logic [7:0] CapPm     = 8'h40;
  localparam logic [7:0] CapMsix   = 8'h50;
  localparam logic [7:0] CapPcie   = 8'h60;
  localparam logic [7:0] CapCommon = 8'ha0;
  localparam logic [7:0] CapNotify = 8'hb0;
  localparam logic [7:0] CapIsr    = 8'hc4;
  localparam logic [7:0] CapDevice = 8'hd4;
  localparam logic [7:0] CapCfg    = 8'he4;

  localparam logic [7:0] IdPm     = 8'h01;
  localparam logic [7:0] IdVendor = 8'h09;
  localparam logic [7:0] IdPcie   = 8'h10;
  localparam logic [7:0] IdMsix   = 8'h11;

  // BAR0.
  localparam logic [31:0] OffCommon = 32'h0000;
  localparam logic [31:0] OffIsr    = 32'h1000;
  localparam logic [31:0] OffDevice = 32'h2000;
  localparam logic [31:0] OffNotify = 32'h3000;
  localparam logic [31:0] OffMsix   = 32'h4000;
  localparam logic [31:0] OffPba    = 32'h5000;
  localparam logic [31:0] OffWindow = 32'h8000;
  localparam logic [31:0] LenWindow = 32'h8000;

  // UUID f3770a1c-5e0d-4c1b-9a55-fe01f3770a1c, a DW for each eight digits, as in the window.
  localparam logic [31:0] Uuid0 = 32'hf3770a1c;
  localparam logic [31:0] Uuid1 = 32'h5e0d4c1b;
  localparam logic [31:0] Uuid2 = 32'h9a55fe01;
  localparam logic [31:0] Uuid3 = 32'hf3770a1c;
  localparam logic [31:0] WindowVersion = ferronic_window_pkg::FwVersionReset;

  if (NumVectors < 1 || NumVectors > 256) begin : g_bad_vectors
    $error("%m: NumVectors (%0d) must be 1 to 256", NumVectors);
  end

  // ---------------------------------------------------------------- registers
  logic         mem_q, bme_q, perr_q, serr_q, intx_off_q;
  logic [4:0]   status_q;          // 15 parity, 13 UR, 12 CA received, 11 CA sent, 8 master parity
  logic [7:0]   cache_line_q, int_line_q;
  logic [63:16] bar_q;
  logic         d3_q;
  logic         msix_en_q, msix_mask_q;
  logic [3:0]   err_en_q;
  logic [2:0]   mps_q, mrrs_q;
  logic         ext_tag_q, timeout_off_q;
  logic         sta_cor_q, sta_ur_q;
  logic [1:0]   aspm_q;
  logic         rcb_q, common_clk_q, ext_sync_q;
  logic [2:0]   win_bar_q, win_len_q;
  logic [31:0]  win_off_q;
  logic         flr_q, d3_exit_q;

  // ---------------------------------------------------------------- read
  // First DW of a virtio capability: type, length, next, vendor-specific.
  function automatic logic [31:0] virtio_cap(input logic [7:0] kind, input logic [7:0] len,
                                             input logic [7:0] next);
    return {kind, len, next, IdVendor};
  endfunction

  logic [31:0] rd_std, rd_ext;
  always_comb begin
    unique case ({addr_i[7:2], 2'b00})
      8'h00:   rd_std = 32'h1041_1af4;
      8'h04:   rd_std = {status_q[4], 1'b0, status_q[3:1], 2'b0, status_q[0], 3'b0, 1'b1, 4'b0,
                         5'b0, intx_off_q, 1'b0, serr_q, 1'b0, perr_q, 3'b0, bme_q, mem_q, 1'b0};
      8'h08:   rd_std = 32'h0200_0001;
      8'h0c:   rd_std = {24'b0, cache_line_q};
      8'h10:   rd_std = {bar_q[31:16], 16'h0004};
      8'h14:   rd_std = bar_q[63:32];
      8'h2c:   rd_std = 32'hfe01_1af4;
      8'h34:   rd_std = {24'b0, CapPm};
      8'h3c:   rd_std = {24'b0, int_line_q};

      CapPm:         rd_std = {16'h0003, CapMsix, IdPm};
      CapPm + 8'h4:  rd_std = {30'b0, d3_q, d3_q};

      CapMsix:       rd_std = {msix_en_q, msix_mask_q, 3'b0, 11'(NumVectors - 1), CapPcie, IdMsix};
      CapMsix + 8'h4: rd_std = OffMsix;
      CapMsix + 8'h8: rd_std = OffPba;

      CapPcie:        rd_std = {16'h0002, CapCommon, IdPcie};
      // FLR, role-based errors, acceptable latencies without limit, tags, payload.
      CapPcie + 8'h04: rd_std = {3'b0, 1'b1, 12'b0, 1'b1, 3'b0, 3'b111, 3'b111, ExtTags, 2'b0,
                                 3'(MaxPayloadCode)};
      CapPcie + 8'h08: rd_std = {10'b0, pending_i, 1'b0, sta_ur_q, 2'b0, sta_cor_q,
                                 1'b0, mrrs_q, 3'b0, ext_tag_q, mps_q, 1'b0, err_en_q};
      // 2.5 GT/s, one lane, ASPM optionality compliance.
      CapPcie + 8'h0c: rd_std = 32'h0040_0011;
      CapPcie + 8'h10: rd_std = {16'h0011, 8'b0, ext_sync_q, common_clk_q, 2'b0, rcb_q, 1'b0,
                                 aspm_q};
      CapPcie + 8'h24: rd_std = 32'h0000_0010;  // completion timeout can be disabled
      CapPcie + 8'h28: rd_std = {27'b0, timeout_off_q, 4'b0};
      CapPcie + 8'h2c: rd_std = 32'h0000_0002;  // 2.5 GT/s

      CapCommon:        rd_std = virtio_cap(8'd1, 8'd16, CapNotify);
      CapCommon + 8'h8: rd_std = OffCommon;
      CapCommon + 8'hc: rd_std = 32'h40;

      CapNotify:         rd_std = virtio_cap(8'd2, 8'd20, CapIsr);
      CapNotify + 8'h8:  rd_std = OffNotify;
      CapNotify + 8'hc:  rd_std = 32'h1000;
      CapNotify + 8'h10: rd_std = 32'd4;

      CapIsr:        rd_std = virtio_cap(8'd3, 8'd16, CapDevice);
      CapIsr + 8'h8: rd_std = OffIsr;
      CapIsr + 8'hc: rd_std = 32'h4;

      CapDevice:        rd_std = virtio_cap(8'd4, 8'd16, CapCfg);
      CapDevice + 8'h8: rd_std = OffDevice;
      CapDevice + 8'hc: rd_std = 32'h100;

      CapCfg:         rd_std = virtio_cap(8'd5, 8'd20, 8'h00);
      CapCfg + 8'h4:  rd_std = {29'b0, win_bar_q};
      CapCfg + 8'h8:  rd_std = win_off_q;
      CapCfg + 8'hc:  rd_std = {29'b0, win_len_q};
      default:        rd_std = '0;
    endcase

    unique case ({addr_i[7:2], 2'b00})
      8'h00:   rd_ext = 32'h0001_0023;           // DVSEC, version 1, last
      8'h04:   rd_ext = {12'h02c, 4'd1, 16'h1af4};
      8'h08:   rd_ext = {16'h0000, 16'hfe01};
      8'h0c:   rd_ext = Uuid0;
      8'h10:   rd_ext = Uuid1;
      8'h14:   rd_ext = Uuid2;
      8'h18:   rd_ext = Uuid3;
      8'h1c:   rd_ext = WindowVersion;
      8'h20:   rd_ext = 32'd0;                   // BAR
      8'h24:   rd_ext = OffWindow;
      8'h28:   rd_ext = LenWindow;
      default: rd_ext = '0;
    endcase

  end
  always_ff @(posedge clk_i) begin
    if (addr_i[11:9] != '0) rdata_o <= '0;
    else rdata_o <= addr_i[8] ? rd_ext : rd_std;
  end

  // ---------------------------------------------------------------- the PCI-config window
  assign win_hit_o  = ({addr_i, 2'b00} == {4'h0, CapCfg + 8'h10});
  assign win_addr_o = {win_off_q[15:2], 2'b00};
  always_comb begin
    unique case (win_len_q)
      3'd1: begin
        win_be_o    = 4'b0001 << win_off_q[1:0];
        win_valid_o = 1'b1;
      end
      3'd2: begin
        win_be_o    = 4'b0011 << win_off_q[1:0];
        win_valid_o = !win_off_q[0];
      end
      3'd4: begin
        win_be_o    = 4'b1111;
        win_valid_o = (win_off_q[1:0] == 2'b00);
      end
      default: begin
        win_be_o    = 4'b0000;
        win_valid_o = 1'b0;
      end
    endcase
    if (win_bar_q != '0 || win_off_q[31:16] != '0) win_valid_o = 1'b0;
  end

  // ---------------------------------------------------------------- write
  wire        std_wr = wr_i && (addr_i[11:8] == 4'h0);
  wire [7:0]  reg_addr = {addr_i[7:2], 2'b00};
  wire        pm_write = std_wr && (reg_addr == CapPm + 8'h4) && be_i[0];
  wire        to_d0 = d3_q && pm_write && (wdata_i[1:0] == 2'b00);
  wire        to_d3 = pm_write && (wdata_i[1:0] == 2'b11);
  wire        flr = std_wr && (reg_addr == CapPcie + 8'h08) && be_i[1] && wdata_i[15];
  wire        clear = flr_q || d3_exit_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      flr_q     <= 1'b0;
      d3_exit_q <= 1'b0;
    end else begin
      flr_q     <= flr;
      d3_exit_q <= to_d0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {mem_q, bme_q, perr_q, serr_q, intx_off_q} <= '0;
      status_q      <= '0;
      cache_line_q  <= '0;
      int_line_q    <= '0;
      bar_q         <= '0;
      d3_q          <= 1'b0;
      msix_en_q     <= 1'b0;
      msix_mask_q   <= 1'b0;
      err_en_q      <= '0;
      mrrs_q        <= 3'd2;
      ext_tag_q     <= 1'b0;
      timeout_off_q <= 1'b0;
      sta_cor_q     <= 1'b0;
      sta_ur_q      <= 1'b0;
      win_bar_q     <= '0;
      win_off_q     <= '0;
      win_len_q     <= '0;
    end else if (clear) begin
      {mem_q, bme_q, perr_q, serr_q, intx_off_q} <= '0;
      status_q      <= '0;
      cache_line_q  <= '0;
      int_line_q    <= '0;
      bar_q         <= '0;
      d3_q          <= 1'b0;
      msix_en_q     <= 1'b0;
      msix_mask_q   <= 1'b0;
      err_en_q      <= '0;
      mrrs_q        <= 3'd2;
      ext_tag_q     <= 1'b0;
      timeout_off_q <= 1'b0;
      sta_cor_q     <= 1'b0;
      sta_ur_q      <= 1'b0;
      win_bar_q     <= '0;
      win_off_q     <= '0;
      win_len_q     <= '0;
    end else begin
      if (std_wr) begin
        unique case (reg_addr)
          8'h04: begin
            if (be_i[0]) {perr_q, bme_q, mem_q} <= {wdata_i[6], wdata_i[2], wdata_i[1]};
            if (be_i[1]) {intx_off_q, serr_q} <= {wdata_i[10], wdata_i[8]};
            if (be_i[2] && wdata_i[24]) status_q[0] <= 1'b0;
            if (be_i[3]) status_q[4:1] <= status_q[4:1] & ~{wdata_i[31], wdata_i[29:27]};
          end
          8'h0c: if (be_i[0]) cache_line_q <= wdata_i[7:0];
          8'h10: begin
            if (be_i[2]) bar_q[23:16] <= wdata_i[23:16];
            if (be_i[3]) bar_q[31:24] <= wdata_i[31:24];
          end
          8'h14: begin
            for (int b = 0; b < 4; b++) begin
              if (be_i[b]) bar_q[32+8*b +: 8] <= wdata_i[8*b +: 8];
            end
          end
          8'h3c: if (be_i[0]) int_line_q <= wdata_i[7:0];
          CapPm + 8'h4: if (to_d3) d3_q <= 1'b1;
          CapMsix: if (be_i[3]) {msix_en_q, msix_mask_q} <= wdata_i[31:30];
          CapPcie + 8'h08: begin
            if (be_i[0]) err_en_q <= wdata_i[3:0];
            if (be_i[1]) {mrrs_q, ext_tag_q} <= {wdata_i[14:12], wdata_i[8] && ExtTags};
            if (be_i[2]) begin
              if (wdata_i[16]) sta_cor_q <= 1'b0;
              if (wdata_i[19]) sta_ur_q <= 1'b0;
            end
          end
          CapPcie + 8'h28: if (be_i[0]) timeout_off_q <= wdata_i[4];
          CapCfg + 8'h4: if (be_i[0]) win_bar_q <= wdata_i[2:0];
          CapCfg + 8'h8: begin
            for (int b = 0; b < 4; b++) begin
              if (be_i[b]) win_off_q[8*b +: 8] <= wdata_i[8*b +: 8];
            end
          end
          CapCfg + 8'hc: if (be_i[0]) win_len_q <= wdata_i[2:0];
          default: ;
        endcase
      end
      // An event in the cycle of the write that clears its bit stays.
      if (ev_poisoned_i) status_q[4] <= 1'b1;
      if (ev_rx_ur_i) status_q[3] <= 1'b1;
      if (ev_rx_ca_i) status_q[2] <= 1'b1;
      if (ev_tx_ca_i) status_q[1] <= 1'b1;
      if (ev_poisoned_i && perr_q) status_q[0] <= 1'b1;
      if (ev_tx_ur_i) sta_ur_q <= 1'b1;
      if (ev_tx_ur_i || ev_tx_ca_i || ev_error_i || ev_poisoned_i) sta_cor_q <= 1'b1;
    end
  end

  // What a function level reset must leave alone.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      mps_q  <= '0;
      aspm_q <= '0;
      {ext_sync_q, common_clk_q, rcb_q} <= '0;
    end else if (std_wr && be_i[0]) begin
      unique case (reg_addr)
        CapPcie + 8'h08: mps_q <= wdata_i[7:5];
        CapPcie + 8'h10: begin
          aspm_q <= wdata_i[1:0];
          {ext_sync_q, common_clk_q, rcb_q} <= {wdata_i[7:6], wdata_i[3]};
        end
        default: ;
      endcase
    end
  end

  // ---------------------------------------------------------------- what they mean
  always_comb begin
    unique case (mps_q)
      3'd0:    max_payload_o = 13'd128;
      3'd1:    max_payload_o = 13'd256;
      default: max_payload_o = 13'd512;
    endcase
    unique case (mrrs_q)
      3'd0:    max_read_o = 13'd128;
      3'd1:    max_read_o = 13'd256;
      3'd2:    max_read_o = 13'd512;
      3'd3:    max_read_o = 13'd1024;
      3'd4:    max_read_o = 13'd2048;
      default: max_read_o = 13'd4096;
    endcase
  end

  assign mem_enable_o  = mem_q && !d3_q;
  assign bar_o         = bar_q;
  assign bus_master_o  = bme_q && !d3_q && !clear;
  assign ext_tag_o     = ext_tag_q;
  assign timeout_off_o = timeout_off_q;
  assign msix_enable_o = msix_en_q && !d3_q;
  assign msix_mask_o   = msix_mask_q;
  assign d3hot_o       = d3_q;
  assign flr_o         = flr_q;
  assign d3_exit_o     = d3_exit_q;
endmodule

// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Writes bytes of the receive frame RAM to host memory as posted TLPs, cut at `max_payload_i` and
// at 4 KiB, any byte alignment on both sides.
//
// The RAM is read from the byte that becomes byte 0 of the first DW, each lane at a word address of
// its own, and one rotator brings it to lane 0. Latency six cycles from command to first beat,
// eight if wider than 64 bits; throughput one beat a cycle without a bubble between TLPs or
// commands of at least two beats; if wider, some of one beat among longer ones cost nothing either.
//
// `halt_i`: a TLP that has begun is sent, everything else is swallowed, `done_o` comes all the same
// and in order. The RAM must hold its read data while `ram_re_o` is low.
`include "ferronic_assert.svh"
module dma_write
  import ferronic_pkg::*;
  import pcie_pkg::*;
#(
  parameter int unsigned DataW = 64,
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned LaneW = $clog2(Lanes),
  localparam int unsigned WordW = 16 - LaneW
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             halt_i,
  output logic             idle_o,
  input  logic [12:0]      max_payload_i,

  input  logic             cmd_valid_i,
  output logic             cmd_ready_o,
  input  dma_wr_cmd_t      cmd_i,
  output logic             done_o,

  output logic             ram_re_o,
  output logic [WordW-1:0] ram_raddr_o,
  output logic [Lanes-1:0] ram_rinc_o,
  input  logic [DataW-1:0] ram_rdata_i,

  output logic             tlp_valid_o,
  input  logic             tlp_ready_i,
  output logic             tlp_sop_o,
  output logic             tlp_eop_o,
  output mem_req_t         tlp_req_o,
  output logic [DataW-1:0] tlp_data_o
);
  if (DataW != 64 && DataW != 128 && DataW != 256 && DataW != 512) begin : g_bad_width
    $error("%m: DataW (%0d) must be 64, 128, 256 or 512", DataW);
  end

  // ---------------------------------------------------------------- commands
  // A frame takes few beats of a wide card: more of them wait, so that the next buffers are found,
  // and the entries of a unit listed, while it is written.
  logic        cmd_valid, cmd_ready;
  dma_wr_cmd_t cmd;
  if (DataW > 64) begin : g_ahead
    logic [4:0] level;
    prim_fifo #(.Width($bits(dma_wr_cmd_t)), .Depth(16)) u_ahead (
      .clk_i, .rst_ni,
      .clr_i     (1'b0),
      .wr_valid_i(cmd_valid_i),
      .wr_ready_o(cmd_ready_o),
      .wr_data_i (cmd_i),
      .rd_valid_o(cmd_valid),
      .rd_ready_i(cmd_ready),
      .rd_data_o (cmd),
      .level_o   (level)
    );
    logic unused_level;
    assign unused_level = ^level;
  end else begin : g_at_once
    assign cmd_valid   = cmd_valid_i;
    assign cmd         = cmd_i;
    assign cmd_ready_o = cmd_ready;
  end

  // ---------------------------------------------------------------- pieces of one TLP each
  typedef struct packed {
    logic [63:2] addr;
    logic [ 1:0] lead;
    logic [12:0] len;
    logic [15:0] ptr;
    logic        last;
    logic        void_;
  } piece_t;
  piece_t split, pc;
  logic   split_valid, split_ready, pc_valid, pc_ready, split_idle, unused_user;

  dma_split #(.UserW(1)) u_split (
    .clk_i,
    .rst_ni,
    .void_i      (halt_i),
    .max_bytes_i (max_payload_i),
    .in_valid_i  (cmd_valid),
    .in_ready_o  (cmd_ready),
    .in_addr_i   (cmd.addr),
    .in_len_i    (cmd.len),
    .in_ptr_i    (cmd.ptr),
    .in_user_i   (1'b0),
    .out_valid_o (split_valid),
    .out_ready_i (split_ready),
    .out_addr_o  (split.addr),
    .out_lead_o  (split.lead),
    .out_len_o   (split.len),
    .out_ptr_o   (split.ptr),
    .out_user_o  (unused_user),
    .out_last_o  (split.last),
    .out_void_o  (split.void_),
    .idle_o      (split_idle)
  );
  // Pieces come two cycles apart, and may be of one beat: a few wait while longer ones are sent.
  if (DataW > 64) begin : g_pieces
    logic [2:0] level;
    prim_fifo #(.Width($bits(piece_t)), .Depth(4)) u_pieces (
      .clk_i, .rst_ni,
      .clr_i     (1'b0),
      .wr_valid_i(split_valid),
      .wr_ready_o(split_ready),
      .wr_data_i (split),
      .rd_valid_o(pc_valid),
      .rd_ready_i(pc_ready),
      .rd_data_o (pc),
      .level_o   (level)
    );
    logic unused_level;
    assign unused_level = ^level;
  end else begin : g_piece
    assign pc_valid    = split_valid;
    assign pc          = split;
    assign split_ready = pc_ready;
  end

  wire [12:0] pc_beats = (pc.len + 13'(Lanes - 1)) >> LaneW;

  // ---------------------------------------------------------------- R: beats to read
  logic             r_valid_q, r_sop_q, r_void_q, r_last_q;
  logic [9:0]       r_beats_q;   // left, this one included
  logic [WordW-1:0] r_word_q;
  logic [LaneW-1:0] r_off_q;
  mem_req_t         r_req_q;

  wire r_adv, d_adv, e_adv;
  wire r_eop = r_void_q || (r_beats_q == 10'd1);
  assign pc_ready = !r_valid_q || (r_adv && r_eop);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) r_valid_q <= 1'b0;
    else if (pc_ready) r_valid_q <= pc_valid;
  end

  always_ff @(posedge clk_i) begin
    if (pc_ready) begin
      r_sop_q   <= 1'b1;
      r_void_q  <= pc.void_ || halt_i;
      r_last_q  <= pc.last;
      r_beats_q <= pc_beats[9:0];
      r_word_q  <= pc.ptr[15:LaneW];
      r_off_q   <= pc.ptr[LaneW-1:0];
      r_req_q   <= mem_request(pc.addr, pc.lead, pc.len);
    end else if (r_adv) begin
      r_sop_q   <= 1'b0;
      r_beats_q <= r_beats_q - 10'd1;
      r_word_q  <= r_word_q + 1'b1;
    end
  end

  assign ram_re_o    = r_valid_q && r_adv;
  assign ram_raddr_o = r_word_q;
  for (genvar l = 0; l < int'(Lanes); l++) begin : g_inc
    assign ram_rinc_o[l] = ({1'b0, LaneW'(l)} < {1'b0, r_off_q});
  end

  // ---------------------------------------------------------------- D: RAM data, rotated
  logic             d_valid_q, d_sop_q, d_eop_q, d_void_q, d_last_q;
  logic [LaneW-1:0] d_rot_q;
  mem_req_t         d_req_q;
  logic [DataW-1:0] d_rotated;

  byte_rotate #(.DataW(DataW)) u_rotate (
    .amount_i(d_rot_q),
    .data_i  (ram_rdata_i),
    .data_o  (d_rotated)
  );

  // ---------------------------------------------------------------- E: out
  logic             e_valid_q, e_sop_q, e_eop_q, e_void_q, e_last_q;
  mem_req_t         e_req_q;
  logic [DataW-1:0] e_data_q;

  assign e_adv = !e_valid_q || e_void_q || tlp_ready_i;
  assign d_adv = !d_valid_q || e_adv;
  assign r_adv = d_adv;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      d_valid_q <= 1'b0;
      e_valid_q <= 1'b0;
    end else begin
      if (d_adv) d_valid_q <= r_valid_q;
      if (e_adv) e_valid_q <= d_valid_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (d_adv) begin
      d_sop_q  <= r_sop_q;
      d_eop_q  <= r_eop;
      d_void_q <= r_void_q;
      d_last_q <= r_last_q;
      d_rot_q  <= -r_off_q;
      d_req_q  <= r_req_q;
    end
    if (e_adv) begin
      e_sop_q  <= d_sop_q;
      e_eop_q  <= d_eop_q;
      e_void_q <= d_void_q;
      e_last_q <= d_last_q;
      e_req_q  <= d_req_q;
      e_data_q <= d_rotated;
    end
  end

  assign tlp_valid_o = e_valid_q && !e_void_q;
  assign tlp_sop_o   = e_sop_q;
  assign tlp_eop_o   = e_eop_q;
  assign tlp_req_o   = e_req_q;
  assign tlp_data_o  = e_data_q;
  assign done_o      = e_valid_q && e_eop_q && e_last_q && (e_void_q || tlp_ready_i);
  assign idle_o      = split_idle && !(DataW > 64 && (cmd_valid || pc_valid)) && !r_valid_q &&
                       !d_valid_q && !e_valid_q;

  logic unused;
  assign unused = ^{pc_beats[12:10], unused_user};

  `FERRONIC_ASSERT_STABLE(TlpStable, tlp_valid_o, tlp_ready_i,
    ({tlp_sop_o, tlp_eop_o, tlp_req_o, tlp_data_o}), clk_i, rst_ni)
endmodule

// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Front half of dma_read: two clients in turn, cut by dma_split, one tag a piece, memory read TLPs
// out. Tags are a ring, taken at `head`; the back half frees them and counts those that are in use.
//
// Without extended tags only 32 are used: a tag on the link is the low five bits of its place in
// the ring. While `halt_i` is high a piece takes its place in the ring without a TLP (`void`), so
// that requests still finish in order.
//
// Throughput: one piece in two cycles, three for the first of a request.
// Invariant: never more tags are in use than there are.
`include "ferronic_assert.svh"
module dma_read_issue
  import ferronic_pkg::*;
  import pcie_pkg::*;
#(
  parameter int unsigned Tags = 32,
  localparam int unsigned TagW = $clog2(Tags)
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            halt_i,
  input  logic [12:0]     max_read_i,
  input  logic            ext_tag_i,    // stable while tags are outstanding
  input  logic [TagW:0]   used_i,       // tags
  output logic [TagW:0]   head_o,
  output logic            idle_o,
  output logic            wait_o,       // nothing moves until a tag is freed or a request comes

  input  logic            ctl_req_valid_i,
  output logic            ctl_req_ready_o,
  input  dma_rd_req_t     ctl_req_i,
  input  logic            tx_req_valid_i,
  output logic            tx_req_ready_o,
  input  dma_rd_req_t     tx_req_i,

  // A tag is taken: valid for one cycle, unless held by alloc_stall_i.
  output logic            alloc_o,
  input  logic            alloc_stall_i,
  output logic [12:0]     alloc_len_o,  // as the RAM address, from the DW of the first byte on
  output logic [15:0]     alloc_ptr_o,
  output logic [ 6:0]     alloc_low_o,  // low bits of the first byte's address
  output dma_dst_e        alloc_dst_o,
  output logic [ 7:0]     alloc_cookie_o,
  output logic            alloc_last_o, // last piece of its request
  output logic            alloc_void_o, // nothing was asked for: finished, with an error

  output logic            np_valid_o,
  input  logic            np_ready_i,
  output mem_req_t        np_req_o,
  output logic [ 7:0]     np_tag_o
);
  // ---------------------------------------------------------------- the two clients, in turn
  logic       prefer_tx_q;
  logic       in_ready;
  wire        pick_tx = tx_req_valid_i && (prefer_tx_q || !ctl_req_valid_i);
  wire        in_valid = ctl_req_valid_i || tx_req_valid_i;
  dma_rd_req_t in_req;
  assign in_req = pick_tx ? tx_req_i : ctl_req_i;
  assign ctl_req_ready_o = in_ready && !pick_tx;
  assign tx_req_ready_o  = in_ready && pick_tx;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) prefer_tx_q <= 1'b0;
    else if (in_valid && in_ready) prefer_tx_q <= !pick_tx;
  end

  // ---------------------------------------------------------------- pieces of one TLP each
  logic        pc_valid, pc_ready, pc_last, pc_void, split_idle;
  logic [63:2] pc_addr;
  logic [ 1:0] pc_lead;
  logic [12:0] pc_len;
  logic [15:0] pc_ptr;
  logic [ 8:0] pc_user;

  dma_split #(.UserW(9)) u_split (
    .clk_i,
    .rst_ni,
    .void_i      (halt_i),
    .max_bytes_i (max_read_i),
    .in_valid_i  (in_valid),
    .in_ready_o  (in_ready),
    .in_addr_i   (in_req.addr),
    .in_len_i    (in_req.len),
    .in_ptr_i    (in_req.ptr),
    .in_user_i   ({pick_tx, in_req.cookie}),
    .out_valid_o (pc_valid),
    .out_ready_i (pc_ready),
    .out_addr_o  (pc_addr),
    .out_lead_o  (pc_lead),
    .out_len_o   (pc_len),
    .out_ptr_o   (pc_ptr),
    .out_user_o  (pc_user),
    .out_last_o  (pc_last),
    .out_void_o  (pc_void),
    .idle_o      (split_idle)
  );

  // ---------------------------------------------------------------- tags
  logic [TagW:0] head_q;
  logic          room;
  if (Tags <= 32) begin : g_room32
    logic unused;
    assign unused = ext_tag_i;
    assign room = !used_i[TagW];
  end else begin : g_room
    assign room = ext_tag_i ? !used_i[TagW] : (used_i < (TagW + 1)'(32));
  end

  // A piece that was cut before the halt but not sent is void too.
  logic out_valid_q;
  wire  out_free = !out_valid_q || np_ready_i;
  wire  is_void  = pc_void || halt_i;
  assign pc_ready = room && !alloc_stall_i && (is_void || out_free);
  assign alloc_o  = pc_valid && pc_ready;

  mem_req_t   out_req_q;
  logic [7:0] out_tag_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      head_q      <= '0;
      out_valid_q <= 1'b0;
    end else begin
      if (alloc_o) head_q <= head_q + 1'b1;
      if (alloc_o && !is_void) out_valid_q <= 1'b1;
      else if (np_ready_i) out_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (alloc_o && !is_void) begin
      out_req_q <= mem_request(pc_addr, pc_lead, pc_len);
      out_tag_q <= (Tags <= 32 || ext_tag_i) ? 8'(head_q[TagW-1:0]) : 8'(head_q[4:0]);
    end
  end

  assign head_o         = head_q;
  assign alloc_len_o    = pc_len;
  assign alloc_ptr_o    = pc_ptr;
  assign alloc_low_o    = {pc_addr[6:2], pc_lead};
  assign alloc_dst_o    = dma_dst_e'(pc_user[8]);
  assign alloc_cookie_o = pc_user[7:0];
  assign alloc_last_o   = pc_last;
  assign alloc_void_o   = is_void;
  assign np_valid_o     = out_valid_q;
  assign np_req_o       = out_req_q;
  assign np_tag_o       = out_tag_q;
  assign idle_o         = split_idle && !out_valid_q && (used_i == '0);

  assign wait_o         = !out_valid_q && !in_valid && (split_idle || (pc_valid && !room));

  `FERRONIC_ASSERT_STABLE(NpStable, np_valid_o, np_ready_i, ({np_req_o, np_tag_o}), clk_i, rst_ni)
  `FERRONIC_ASSERT(TagsBounded, used_i <= (TagW + 1)'(Tags), clk_i, rst_ni)
endmodule

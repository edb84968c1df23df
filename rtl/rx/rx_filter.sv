// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Filters received frames by destination address and VLAN. It sees a frame's first beats as they
// are offered to rx_fifo and says, before the last is stored, whether the frame is taken.
//
// Addresses are compared row by row, Ways rows a cycle, up to the one that is equal; VLANs have a
// bit each in a RAM. From the first beat it takes three cycles, and one more for every Ways rows in
// front of the equal one; a frame that is over sooner waits for the rest. In promiscuous mode
// without a VLAN filter it says so at once.
//
// Settings count for frames that begin after they changed; tables at once.
`include "ferronic_assert.svh"
module rx_filter
  import ferronic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned Ways = 2,
  localparam int unsigned Addresses = 16
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             clr_i,
  input  filter_cfg_t      cfg_i,
  input  filter_write_t    write_i,

  // Beats of a frame: offered, stored in the same cycle or later.
  input  logic             offer_i,
  input  logic             first_i,
  input  logic             store_i,
  input  logic [DataW-1:0] data_i,
  output logic             ready_o,      // the frame may end with the beat that is offered
  output logic             drop_o        // and is dropped then
);
  if (Ways < 1 || Ways > Addresses || (Ways & (Ways - 1)) != 0) begin : g_bad_ways
    $error("%m: Ways (%0d) must be a power of two, at most 16", Ways);
  end
  localparam int unsigned Rows = Addresses / Ways;
  localparam int unsigned RowW = (Rows > 1) ? $clog2(Rows) : 1;
  typedef logic [RowW-1:0] row_t;

  // ---------------------------------------------------------------- the beats
  filter_cfg_t cfg_q;
  logic        seen_q, second_q, wait_tag_q, type_seen;
  logic [47:0] dst_q;
  logic [31:0] tag;           // type and what follows
  wire         begins = offer_i && first_i && !seen_q;
  // In force for the frame that is here.
  wire vlan_on     = begins ? cfg_i.vlan : cfg_q.vlan;
  wire promiscuous = begins ? cfg_i.promiscuous : cfg_q.promiscuous;
  // At 64 bits the type is in the second beat.
  if (DataW == 64) begin : g_second
    assign type_seen = offer_i && second_q && wait_tag_q;
    assign tag    = {data_i[39:32], data_i[47:40], data_i[55:48], data_i[63:56]};
  end else begin : g_first
    assign type_seen = begins;
    assign tag    = {data_i[103:96], data_i[111:104], data_i[119:112], data_i[127:120]};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      seen_q     <= 1'b0;
      second_q   <= 1'b0;
      wait_tag_q <= 1'b0;
    end else begin
      seen_q <= offer_i && first_i && !store_i;
      if (store_i) second_q <= first_i;
      if (begins) wait_tag_q <= cfg_i.vlan && !type_seen;
      else if (type_seen) wait_tag_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (begins) begin
      dst_q <= data_i[47:0];
      cfg_q <= cfg_i;
    end
  end

  // ---------------------------------------------------------------- addresses
  typedef struct packed {
    logic        used;
    logic [47:0] address;
  } entry_t;
  logic            seek_q, compare_q, hit_q, broadcast_q;
  row_t            row_q;
  logic [Ways-1:0] equal;
  entry_t [Ways-1:0] entry_q;
  wire             found = compare_q && (equal != '0);
  for (genvar w = 0; w < int'(Ways); w++) begin : g_way
    entry_t entry;
    wire    mine = ((5'(write_i.row[3:0]) % 5'(Ways)) == 5'(w));
    prim_lutram #(.Width($bits(entry_t)), .Depth((Rows > 1) ? Rows : 2), .ZeroInit(1'b1)) u_rows (
      .clk_i, .we_i(write_i.address_we && mine && rst_ni),
      .waddr_i(row_t'(5'(write_i.row[3:0]) / 5'(Ways))), .wdata_i({write_i.used, write_i.data}),
      .raddr_i(row_q), .rdata_o(entry));
    always_ff @(posedge clk_i) entry_q[w] <= entry;
    assign equal[w] = entry_q[w].used && (entry_q[w].address == dst_q);
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      seek_q    <= 1'b0;
      compare_q <= 1'b0;
    end else if (begins) begin
      seek_q    <= !cfg_i.promiscuous;
      compare_q <= 1'b0;
    end else begin
      if (found || row_q == row_t'(Rows - 1)) seek_q <= 1'b0;
      compare_q <= seek_q && !found;
    end
  end
  always_ff @(posedge clk_i) begin
    if (begins) begin
      row_q <= '0;
      hit_q <= 1'b0;
    end else begin
      if (seek_q) row_q <= row_q + 1'b1;
      if (found) hit_q <= 1'b1;
    end
    broadcast_q <= (dst_q == '1);
  end

  // ---------------------------------------------------------------- VLANs
  // While a frame is looked up nothing is written.
  logic        look_q, tag_q, vlan_ok_q, write_q;
  logic [4:0]  bit_q;
  logic [6:0]  write_row_q;
  logic [31:0] vlans, write_data_q;
  prim_ram_1r1w #(.Width(32), .Depth(128), .InBlock(1'b1), .ZeroInit(1'b1)) u_vlans (
    .clk_i, .we_i(write_q && !type_seen && rst_ni), .waddr_i(write_row_q), .wdata_i(write_data_q),
    .re_i(type_seen), .raddr_i(tag[11:5]), .rdata_o(vlans));
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) look_q <= 1'b0;
    else look_q <= type_seen && vlan_on;
    if (!rst_ni) write_q <= 1'b0;
    else write_q <= write_i.vlan_we || (write_q && type_seen);
  end
  always_ff @(posedge clk_i) begin
    if (type_seen) begin
      tag_q <= (tag[31:16] == 16'h8100);
      bit_q <= tag[4:0];
    end
    if (look_q) vlan_ok_q <= !tag_q || vlans[bit_q];
    if (write_i.vlan_we) begin
      write_row_q  <= write_i.row;
      write_data_q <= write_i.data[31:0];
    end
  end

  // ---------------------------------------------------------------- said
  logic taken;
  always_comb begin
    if (broadcast_q)   taken = !cfg_q.no_broadcast;
    else if (dst_q[0]) taken = !cfg_q.no_multicast && (cfg_q.all_multicast || hit_q);
    else               taken = !cfg_q.no_unicast && (cfg_q.all_unicast || hit_q);
  end
  // At 64 bits a frame of one beat is too short anyway.
  wire   new_frame = (DataW != 64) && begins && (!cfg_i.promiscuous || cfg_i.vlan);
  assign ready_o = !new_frame && !seek_q && !compare_q && !wait_tag_q && !look_q;
  assign drop_o  = !(promiscuous || taken) || (vlan_on && !vlan_ok_q);

  logic unused;
  assign unused = ^{data_i, write_i, tag, second_q};
endmodule

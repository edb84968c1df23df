// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Rotates a beat upwards by `amount_i` bytes: byte 0 goes to lane `amount_i`. Combinational.
module byte_rotate #(
  parameter int unsigned DataW = 64,
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned AmtW = $clog2(Lanes)
) (
  input  logic [AmtW-1:0]  amount_i,
  input  logic [DataW-1:0] data_i,
  output logic [DataW-1:0] data_o
);
  wire [2*DataW-1:0] doubled = {data_i, data_i} << {amount_i, 3'b000};
  assign data_o = doubled[2*DataW-1:DataW];

  logic unused;
  assign unused = ^doubled[DataW-1:0];
endmodule

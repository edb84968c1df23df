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
  // By 1, 2, 4 ... bytes in turn: one level of multiplexers a bit of the amount.
  logic [AmtW:0][DataW-1:0] level;
  assign level[0] = data_i;
  for (genvar s = 0; s < int'(AmtW); s++) begin : g_level
    localparam int unsigned By = 8 * (1 << s);
    assign level[s+1] = amount_i[s] ? {level[s][DataW-By-1:0], level[s][DataW-1:DataW-By]}
                                    : level[s];
  end
  assign data_o = level[AmtW];
endmodule

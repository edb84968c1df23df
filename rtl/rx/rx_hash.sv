// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The hash of receive-side scaling: Toeplitz over what header_parser says that it covers (virtio
// 1.2, "Receive-side scaling" of the network device). Each bit of the input, in order, adds the 32
// bits of the key from its own position on, if it is set.
//
// Bits a cycle: 16, one half of a word, or 64, a whole word. A word takes a cycle for each half
// that counts, or one; the result comes two cycles after the last word was taken and is held until
// it is taken. So at 16 bits a cycle an IPv6 TCP frame takes 19 cycles, an IPv4 one 7; at 64 bits 8
// and 4, as halves of different words are not put together.
//
// Both halves of the key can be written at any time; which is used changes between frames. A frame
// that is begun anew before its last word leaves nothing behind.
`include "ferronic_assert.svh"
module rx_hash
  import ferronic_pkg::*;
#(
  parameter int unsigned BitsPerCycle = 16
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         clr_i,
  input  logic         bank_i,
  input  steer_write_t write_i,       // rows of the half that is not in use

  input  logic         word_valid_i,
  output logic         word_ready_o,
  input  hash_word_t   word_i,

  output logic         hash_valid_o,
  input  logic         hash_ready_i,
  output logic [31:0]  hash_o,        // 0 if there is none
  output hash_report_e report_o
);
  localparam int unsigned Halves = BitsPerCycle / 16;
  localparam int unsigned KeyRows = 10;
  if (Halves != 1 && Halves != 4) begin : g_bad_bits
    $error("%m: BitsPerCycle (%0d) must be 16 or 64", BitsPerCycle);
  end

  // ---------------------------------------------------------------- what is added next
  typedef logic [3:0] take_t;
  logic        mid_q, open_q, bank_q, moved_q, end_q, void_q;
  take_t       rest_q, take, now, rest, step_q;
  logic [3:0][15:0] data_q;
  hash_report_e report_q;
  logic        busy;

  assign take = mid_q ? rest_q : word_i.take;
  assign now  = (Halves == 1) ? (take & (~take + 4'd1)) : take;
  assign rest = take & ~now;
  // What was begun before is forgotten first.
  wire   forget = word_i.first && !mid_q && open_q;
  wire   go     = word_valid_i && !busy && !(word_i.last && rest == '0 && !forget &&
                                             (end_q || (hash_valid_o && !hash_ready_i)));
  wire   ends   = go && !forget && word_i.last && (rest == '0);
  assign word_ready_o = go && !forget && (rest == '0);
  // With a half in the last word the key is back at its beginning a cycle later. A frame begins
  // with the key that it ends with.
  wire   begins = word_i.first && !mid_q && !open_q;
  assign busy = (end_q && step_q != '0) || (begins && ((bank_i != bank_q) || moved_q));

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      mid_q  <= 1'b0;
      open_q <= 1'b0;
      step_q <= '0;
      end_q  <= 1'b0;
      void_q <= 1'b0;
    end else begin
      if (go && !forget) mid_q <= (rest != '0);
      if (go) open_q <= !forget && !ends && (open_q || take != '0);
      step_q <= (go && !forget) ? now : '0;
      end_q  <= ends;
      void_q <= go && forget;
    end
  end
  always_ff @(posedge clk_i) begin
    if (go) rest_q <= rest;
    report_q <= word_i.report;
    if (Halves == 1) begin
      data_q[0] <= '0;
      for (int unsigned j = 0; j < 4; j++) if (now[j]) data_q[0] <= word_i.half[j];
      data_q[3:1] <= '0;
    end else begin
      data_q <= word_i.half;
    end
  end

  // ---------------------------------------------------------------- added
  logic [4:0]       at_q, at_end;     // halves so far
  logic [31:0]      hash_q, hash_new;
  wire              clean = (at_q == '0) && (step_q == '0);
  logic [3:0][47:0] window;           // of the key, for each half
  function automatic logic [31:0] toeplitz(input logic [15:0] data, input logic [47:0] key);
    toeplitz = '0;
    for (int unsigned i = 0; i < 16; i++) if (data[15-i]) toeplitz ^= key[47-i -: 32];
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bank_q  <= 1'b0;
      moved_q <= 1'b0;
    end else begin
      moved_q <= clean && (bank_q != bank_i);
      if (clean) bank_q <= bank_i;
    end
  end

  if (Halves == 1) begin : g_half
    // Two rows of the key beside each other: that of this half, and the next.
    logic [31:0] row_q, row;
    wire  [3:0]  next = at_q[4:1] + 4'd1;
    wire         back = (step_q == '0) && (end_q || void_q || at_q == '0);
    prim_lutram #(.Width(32), .Depth(32)) u_key (
      .clk_i, .we_i(write_i.key_we), .waddr_i({!bank_i, write_i.row[3:0]}),
      .wdata_i(write_i.data), .raddr_i({bank_q, back ? 4'd0 : next}), .rdata_o(row));
    always_ff @(posedge clk_i) begin
      if (back || (step_q != '0 && at_q[0])) row_q <= row;
    end
    wire [63:0] rows = {row_q, row};
    assign window[0] = at_q[0] ? rows[47:0] : rows[63:16];
    assign window[3:1] = '0;
    assign hash_new = hash_q ^ ((step_q != '0) ? toeplitz(data_q[0], window[0]) : '0);
    assign at_end   = at_q + 5'(step_q != '0);
  end else begin : g_word
    logic [1:0][KeyRows-1:0][31:0] key_q;
    logic [319:0] key;
    always_ff @(posedge clk_i) begin
      for (int unsigned r = 0; r < KeyRows; r++) begin
        if (write_i.key_we && write_i.row == 7'(r)) key_q[!bank_i][r] <= write_i.data;
      end
    end
    for (genvar r = 0; r < int'(KeyRows); r++) begin : g_row
      assign key[319 - 32*r -: 32] = key_q[bank_q][r];
    end
    always_comb begin
      hash_new = hash_q;
      at_end   = at_q;
      for (int unsigned j = 0; j < 4; j++) begin
        window[j] = 48'((key << {at_end, 4'd0}) >> 272);
        if (step_q[j]) begin
          hash_new ^= toeplitz(data_q[j], window[j]);
          at_end   = at_end + 5'd1;
        end
      end
    end
  end

  // Addresses and ports must have been there.
  logic [4:0] whole;
  always_comb begin
    unique case (report_q)
      HashIp4:            whole = 5'd4;
      HashTcp4, HashUdp4: whole = 5'd6;
      HashIp6:            whole = 5'd16;
      default:            whole = 5'd18;
    endcase
  end
  wire some = (report_q != HashNone) && (at_end == whole);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      at_q         <= '0;
      hash_q       <= '0;
      hash_valid_o <= 1'b0;
    end else begin
      at_q   <= (end_q || void_q) ? '0 : at_end;
      hash_q <= (end_q || void_q) ? '0 : hash_new;
      hash_valid_o <= end_q || (hash_valid_o && !hash_ready_i);
    end
  end
  always_ff @(posedge clk_i) begin
    if (end_q) begin
      hash_o   <= some ? hash_new : '0;
      report_o <= some ? report_q : HashNone;
    end
  end

  logic unused;
  assign unused = ^{write_i, window, data_q};

  `FERRONIC_ASSERT(ResultKept, !(end_q && hash_valid_o && !hash_ready_i), clk_i, rst_ni)
  `FERRONIC_ASSERT(CoversLittle, at_q <= 5'd18, clk_i, rst_ni)
endmodule

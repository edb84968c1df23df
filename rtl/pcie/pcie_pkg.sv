// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Transaction-layer packet headers (PCI Express Base Specification, "Transaction Layer Protocol -
// Packet Definition"). A header is four DWs with DW0 in bits 31:0; within a DW, byte 0 of the
// specification's pictures is bits 31:24.
package pcie_pkg;
  // Not every block that imports the package uses each of its constants.
  /* verilator lint_off UNUSEDPARAM */

  // {fmt, type} of the packets the card sends or understands.
  typedef enum logic [7:0] {
    TlpMRd3   = 8'b000_00000,
    TlpMRd4   = 8'b001_00000,
    TlpMRdLk3 = 8'b000_00001,
    TlpMRdLk4 = 8'b001_00001,
    TlpMWr3   = 8'b010_00000,
    TlpMWr4   = 8'b011_00000,
    TlpIORd   = 8'b000_00010,
    TlpIOWr   = 8'b010_00010,
    TlpCfgRd0 = 8'b000_00100,
    TlpCfgWr0 = 8'b010_00100,
    TlpCfgRd1 = 8'b000_00101,
    TlpCfgWr1 = 8'b010_00101,
    TlpCpl    = 8'b000_01010,
    TlpCplD   = 8'b010_01010,
    TlpCplLk  = 8'b000_01011
  } tlp_type_e;

  // Completion status.
  localparam logic [2:0] CplSc = 3'b000; // successful
  localparam logic [2:0] CplUr = 3'b001; // unsupported request
  localparam logic [2:0] CplCa = 3'b100; // completer abort

  // DW0 of every header.
  typedef struct packed {
    logic [7:0] fmt_type;
    logic       r0;
    logic [2:0] tc;
    logic       r1;
    logic       ido;
    logic       ln;
    logic       th;
    logic       td;      // a digest follows; the link layer takes it off
    logic       ep;      // poisoned
    logic [1:0] attr;
    logic [1:0] at;
    logic [9:0] dw_len;  // 0 means 1024
  } tlp_dw0_t;

  // A memory request of this card, before it becomes a header. Fewer registers than the header.
  typedef struct packed {
    logic [63:2] addr;
    logic [ 9:0] dw_len;
    logic [ 3:0] last_be;
    logic [ 3:0] first_be;
  } mem_req_t;

  // Longest payload of the card's posted writes is 512 bytes (Max_Payload_Size Supported).
  localparam int unsigned MaxPayloadCode = 2;

  function automatic logic [127:0] mem_header(input logic write, input mem_req_t req,
                                              input logic [15:0] requester, input logic [7:0] tag);
    logic four_dw;
    logic [31:0] dw0, dw1;
    four_dw = (req.addr[63:32] != '0);
    dw0 = {1'b0, write, four_dw, 5'b0, 14'b0, req.dw_len};
    dw1 = {requester, tag, req.last_be, req.first_be};
    return four_dw ? {req.addr[31:2], 2'b00, req.addr[63:32], dw1, dw0}
                   : {32'b0, req.addr[31:2], 2'b00, dw1, dw0};
  endfunction

  // Byte enables of the last DW of `len` bytes that begin with a DW.
  function automatic logic [3:0] be_upto(input logic [1:0] len);
    unique case (len)
      2'd1:    return 4'b0001;
      2'd2:    return 4'b0011;
      2'd3:    return 4'b0111;
      default: return 4'b1111;
    endcase
  endfunction

  // The request for `len` bytes from the DW at `addr` on, but not for the first `lead` of them.
  function automatic mem_req_t mem_request(input logic [63:2] addr, input logic [1:0] lead,
                                           input logic [12:0] len);
    mem_req_t req;
    logic one;
    one          = (len <= 13'd4);
    req.addr     = addr;
    req.dw_len   = len[11:2] + 10'(len[1:0] != 2'b00);
    req.first_be = (4'b1111 << lead) & (one ? be_upto(len[1:0]) : 4'b1111);
    req.last_be  = one ? 4'b0000 : be_upto(len[1:0]);
    return req;
  endfunction

  /* verilator lint_on UNUSEDPARAM */
endpackage

// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Serves the requests of the link, one at a time and in order: configuration type 0, and memory
// reads and writes of one or two DWs that hit BAR0, which become accesses on the register bus.
// Everything else is answered UR, longer accesses of BAR0 CA; posted ones are dropped.
//
// A doorbell write takes seven cycles with a register that answers in one. Completions leave
// through a pcie_order of their own. While `fn_busy_i` is high (a function reset) writes are void,
// but for the MSI-X table; reads are served. No access leaves half done, and none waits for the
// link's other direction.
`include "ferronic_assert.svh"
module pcie_target
  import ferronic_pkg::*;
  import pcie_pkg::*;
#(
  parameter int unsigned DataW = 64
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              fn_busy_i,
  output logic              idle_o,

  input  logic              rq_valid_i,
  output logic              rq_ready_o,
  input  logic              rq_sop_i,
  input  logic              rq_eop_i,
  input  logic [127:0]      rq_hdr_i,
  // Two DWs are the longest access that is served; longer ones are only counted.
  /* verilator lint_off UNUSEDSIGNAL */
  input  logic [DataW-1:0]  rq_data_i,
  /* verilator lint_on UNUSEDSIGNAL */

  input  logic [3:0]        in_flight_i,   // posted writes under way, see pcie_posted_arb
  input  logic              retired_i,
  output logic              cc_valid_o,
  input  logic              cc_ready_i,
  output logic              cc_sop_o,
  output logic              cc_eop_o,
  output logic [127:0]      cc_hdr_o,
  output logic [DataW-1:0]  cc_data_o,

  output logic [15:0]       requester_o,   // bus, device and function, as captured

  input  logic              mem_enable_i,
  input  logic [63:16]      bar_i,
  output logic              cfg_wr_o,
  output logic [11:2]       cfg_addr_o,
  output logic [3:0]        cfg_be_o,
  output logic [31:0]       cfg_wdata_o,
  input  logic [31:0]       cfg_rdata_i,
  input  logic              win_hit_i,
  input  logic              win_valid_i,
  input  logic [15:0]       win_addr_i,
  input  logic [3:0]        win_be_i,

  output reg_req_t          reg_req_o,
  input  reg_rsp_t          reg_rsp_i,

  output logic              ev_ur_o,       // unsupported: answered UR, or dropped
  output logic              ev_ca_o,       // answered CA, or a long write dropped
  output logic              ev_poisoned_o
);
  // ---------------------------------------------------------------- the request being served
  logic         full_q, sop_q, eop_q;
  logic [127:0] hdr_q;
  logic [63:0]  data_q;
  logic         free;      // done with it

  assign rq_ready_o = !full_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) full_q <= 1'b0;
    else full_q <= full_q ? !free : rq_valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (!full_q) begin
      sop_q  <= rq_sop_i;
      eop_q  <= rq_eop_i;
      if (rq_sop_i) hdr_q <= rq_hdr_i;
    end
  end

  // The DW that is written next, and how it is brought to its lanes.
  logic second_dw, shift_up;
  always_ff @(posedge clk_i) begin
    if (!full_q)        data_q       <= rq_data_i[63:0];
    else if (second_dw) data_q[31:0] <= data_q[63:32];
    else if (shift_up)  data_q[31:0] <= {data_q[23:0], 8'h00};
  end

  tlp_dw0_t    dw0;
  logic [15:0] requester;
  logic [7:0]  tag;
  logic [3:0]  first_be, last_be;
  assign dw0       = hdr_q[31:0];
  assign requester = hdr_q[63:48];
  assign tag       = hdr_q[47:40];
  assign last_be   = hdr_q[39:36];
  assign first_be  = hdr_q[35:32];

  // ---------------------------------------------------------------- decode
  typedef enum logic [2:0] {
    ActDrop,     // posted, not for us and no error: messages
    ActBad,      // dropped, and an error
    ActUr,
    ActCa,
    ActCfg,
    ActMem
  } act_e;

  wire         four_dw  = dw0.fmt_type[5];
  wire         has_data = dw0.fmt_type[6];
  wire         is_mrd   = (dw0.fmt_type == TlpMRd3) || (dw0.fmt_type == TlpMRd4);
  wire         is_mwr   = (dw0.fmt_type == TlpMWr3) || (dw0.fmt_type == TlpMWr4);
  wire         is_cfg   = (dw0.fmt_type == TlpCfgRd0) || (dw0.fmt_type == TlpCfgWr0);
  wire         is_lock  = (dw0.fmt_type == TlpMRdLk3) || (dw0.fmt_type == TlpMRdLk4);
  wire         is_msg   = (dw0.fmt_type[7:6] == 2'b00 || dw0.fmt_type[7:6] == 2'b01) &&
                          (dw0.fmt_type[5:3] == 3'b110);
  // IO, type 1 configuration and atomic operations want an answer.
  wire         is_other = (dw0.fmt_type == TlpIORd) || (dw0.fmt_type == TlpIOWr) ||
                          (dw0.fmt_type == TlpCfgRd1) || (dw0.fmt_type == TlpCfgWr1) ||
                          (dw0.fmt_type[7:6] == 2'b01 && dw0.fmt_type[4:2] == 3'b011);
  wire  [63:2] mem_addr = four_dw ? {hdr_q[95:64], hdr_q[127:98]} : {32'b0, hdr_q[95:66]};
  wire         two_dw   = (dw0.dw_len == 10'd2);
  wire         poisoned = dw0.ep && has_data;
  wire         bar_hit  = mem_enable_i && (mem_addr[63:16] == bar_i);
  wire         in_msix  = (mem_addr[15:13] == 3'b010);
  wire         in_bar   = (dw0.dw_len == 10'd1) || (two_dw && mem_addr[15:2] != '1);

  act_e act;
  always_comb begin
    if (is_msg)                    act = ActDrop;
    else if (is_mwr)               act = (bar_hit && in_bar && !poisoned) ? ActMem : ActBad;
    else if (is_mrd && bar_hit)    act = in_bar ? ActMem : ActCa;
    else if (is_cfg && hdr_q[82:80] == 3'd0 && !poisoned && dw0.dw_len == 10'd1) act = ActCfg;
    else if (is_mrd || is_cfg || is_lock || is_other) act = ActUr;
    else                           act = ActBad;
  end

  // ---------------------------------------------------------------- control
  typedef enum logic [2:0] {StIdle, StGo, StAlign, StReg, StNext, StCpl, StSend} state_e;
  state_e state_q;
  act_e   act_q;
  logic   win_q;        // a register access through the PCI-config window
  logic   second_q;     // of two DWs
  logic   [63:0] rdata_q;

  wire [15:0] reg_addr = win_q ? win_addr_i : {mem_addr[15:2] + {13'b0, second_q}, 2'b00};
  wire [3:0]  reg_be   = win_q ? win_be_i : second_q ? last_be : first_be;

  // The window's data register is aligned to its own first byte, the register bus to the DW: a byte
  // a cycle, before a write and after a read.
  logic [1:0]  align_q, win_shift;
  logic        got_q;     // `rsp_q` is new
  logic [31:0] rsp_q;
  assign win_shift = win_be_i[0] ? 2'd0 : win_be_i[1] ? 2'd1 : win_be_i[2] ? 2'd2 : 2'd3;
  wire   aligned   = (align_q == '0) && !got_q;
  wire   shift     = (state_q == StAlign) && (align_q != '0) && !got_q;
  assign shift_up  = shift && has_data;
  assign second_dw = (state_q == StNext);

  // An access without byte enables reaches no register.
  wire no_access = (reg_be == '0);
  wire reg_done  = (state_q == StReg) && (reg_rsp_i.ack || no_access);
  wire more      = !win_q && two_dw && !second_q;

  // A cycle later than known: the way from the TLP to the registers is long enough.
  always_ff @(posedge clk_i) begin
    reg_req_o <= '{valid: (state_q == StReg) && !no_access && !reg_rsp_i.ack && rst_ni,
                   write: has_data, addr: reg_addr, be: reg_be, wdata: data_q[31:0]};
  end

  assign cfg_addr_o  = {hdr_q[75:72], hdr_q[71:66]};
  assign cfg_be_o    = first_be;
  assign cfg_wdata_o = data_q[31:0];
  assign cfg_wr_o    = (state_q == StGo) && (act_q == ActCfg) && has_data && !win_hit_i;

  logic order_valid, order_ready, sent;
  assign sent = (state_q == StSend) && order_valid && cc_ready_i;

  always_comb begin
    free = 1'b0;
    unique case (state_q)
      StIdle:  free = !sop_q;
      StGo:    free = (act_q == ActDrop) || (act_q == ActBad);
      StReg:   free = reg_done && !more && is_mwr;
      StSend:  free = sent;
      default: free = 1'b0;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q  <= StIdle;
      act_q    <= ActDrop;
      win_q    <= 1'b0;
      second_q <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle: begin
          act_q    <= act;
          win_q    <= 1'b0;
          second_q <= 1'b0;
          if (full_q && sop_q) state_q <= StGo;
        end
        StGo: begin
          unique case (act_q)
            ActCfg: begin
              if (!win_hit_i || !win_valid_i) begin
                state_q <= StCpl;
              end else if (fn_busy_i && has_data) begin
                state_q <= StCpl;
              end else begin
                win_q   <= 1'b1;
                state_q <= has_data ? StAlign : StReg;
              end
            end
            // A posted write must be taken whatever the card is waiting for: during a reset
            // it is void, but for the MSI-X table, which has nothing to do with the reset.
            ActMem: state_q <= (fn_busy_i && is_mwr && !in_msix) ? StIdle : StReg;
            ActUr, ActCa: state_q <= StCpl;
            default: state_q <= StIdle;
          endcase
        end
        StAlign: if (aligned) state_q <= has_data ? StReg : StCpl;
        StReg: begin
          if (reg_done) begin
            if (more)                    state_q <= StNext;
            else if (is_mwr)             state_q <= StIdle;
            else if (win_q && !has_data) state_q <= StAlign;
            else                         state_q <= StCpl;
          end
        end
        StNext: begin
          second_q <= 1'b1;
          state_q  <= StReg;
        end
        StCpl:   if (order_ready) state_q <= StSend;
        StSend:  if (sent) state_q <= StIdle;
        default: state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    got_q <= reg_done && !no_access;
    rsp_q <= reg_rsp_i.rdata;
    if (state_q == StGo) align_q <= win_shift;
    else if (shift) align_q <= align_q - 2'd1;
    if (state_q == StIdle) rdata_q <= '0;
    if (state_q == StGo && act_q == ActCfg && !win_hit_i) rdata_q[31:0] <= cfg_rdata_i;
    if (got_q && second_q) rdata_q[63:32] <= rsp_q;
    if (got_q && !second_q) rdata_q[31:0] <= rsp_q;
    if (shift && !has_data) rdata_q[31:0] <= {8'h00, rdata_q[31:8]};
  end

  // Every configuration write tells the function its number.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) requester_o <= '0;
    else if (state_q == StGo && act_q == ActCfg && has_data) requester_o <= hdr_q[95:80];
  end

  // ---------------------------------------------------------------- completion
  logic unused_token, order_idle;
  pcie_order #(.Width(1)) u_order (
    .clk_i,
    .rst_ni,
    .in_flight_i,
    .retired_i,
    .idle_o     (order_idle),
    .in_valid_i (state_q == StCpl),
    .in_ready_o (order_ready),
    .in_data_i  (1'b0),
    .out_valid_o(order_valid),
    .out_ready_i(sent),
    .out_data_o (unused_token)
  );

  // Bytes before the first enabled one, and after the last.
  logic [1:0] lead, trail;
  wire  [3:1] end_be = (dw0.dw_len == 10'd1) ? first_be[3:1] : last_be[3:1];
  assign lead  = first_be[0] ? 2'd0 : first_be[1] ? 2'd1 : first_be[2] ? 2'd2 :
                 first_be[3] ? 2'd3 : 2'd0;
  assign trail = end_be[3] ? 2'd0 : end_be[2] ? 2'd1 : end_be[1] ? 2'd2 : 2'd3;
  wire        cpl_data   = (act_q == ActCfg || act_q == ActMem) && !has_data;
  wire [11:0] byte_count = (is_mrd || is_lock) ?
                           {dw0.dw_len, 2'b00} - {10'b0, lead} - {10'b0, trail} : 12'd4;
  wire [6:0]  lower      = (is_mrd || is_lock) ? {mem_addr[6:2], lead} : 7'd0;
  logic [2:0] status;
  logic [7:0] cpl_type;
  always_comb begin
    unique case (act_q)
      ActUr:   status = CplUr;
      ActCa:   status = CplCa;
      default: status = CplSc;
    endcase
    if (is_lock)       cpl_type = TlpCplLk;
    else if (cpl_data) cpl_type = TlpCplD;
    else               cpl_type = TlpCpl;
  end

  assign cc_valid_o = (state_q == StSend) && order_valid;
  assign cc_sop_o   = 1'b1;
  assign cc_eop_o   = 1'b1;
  assign cc_hdr_o   = {32'b0,
                       requester, tag, 1'b0, lower,
                       requester_o, status, 1'b0, byte_count,
                       cpl_type, 1'b0, dw0.tc, 1'b0, dw0.ido, 4'b0, dw0.attr, 2'b0,
                       cpl_data ? dw0.dw_len : 10'd0};
  assign cc_data_o  = DataW'(rdata_q);

  // ---------------------------------------------------------------- events
  wire decide = (state_q == StGo);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ev_ur_o       <= 1'b0;
      ev_ca_o       <= 1'b0;
      ev_poisoned_o <= 1'b0;
    end else begin
      ev_ur_o       <= decide && (act_q == ActUr || (act_q == ActBad && !bar_hit)) && !poisoned;
      ev_ca_o       <= decide && (act_q == ActCa || (act_q == ActBad && bar_hit)) && !poisoned;
      ev_poisoned_o <= decide && poisoned;
    end
  end

  assign idle_o = !full_q && order_idle;

  logic unused;
  assign unused = ^{eop_q, unused_token, dw0.r0, dw0.r1, dw0.ln, dw0.th, dw0.td, dw0.at,
                    hdr_q[97:96]};

  `FERRONIC_ASSERT_STABLE(CcStable, cc_valid_o, cc_ready_i, ({cc_hdr_o, cc_data_o}), clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(RegStable, reg_req_o.valid, reg_rsp_i.ack, reg_req_o, clk_i, rst_ni)
endmodule

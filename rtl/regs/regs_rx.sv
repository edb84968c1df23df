// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Settings of steering and of the receive filters, in front of the rest of our window.
//
// Tables are not kept here: a write goes on to where it is used, in the cycle of its answer.
// Accesses take three cycles. That RSS_APPLY and RX_FOLLOW wait for what is held is regs_lro's
// doing. HASH_REPORT reads 0: no header has a hash yet. A function reset restores the settings;
// tables stay as they are and are out of use.
`include "ferronic_assert.svh"
module regs_rx
  import ferronic_pkg::*;
  import ferronic_window_pkg::*;
#(
  parameter bit Steering = 1'b1,
  parameter bit Filters = 1'b1
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  logic          fn_rst_i,

  input  reg_req_t      req_i,
  output reg_rsp_t      rsp_o,
  output reg_req_t      window_req_o,  // the rest of the window
  input  reg_rsp_t      window_rsp_i,

  output steer_cfg_t    steer_o,
  output steer_write_t  steer_write_o,
  output filter_cfg_t   filter_o,
  output filter_write_t filter_write_o
);
  // ---------------------------------------------------------------- accesses
  // 0x200 to 0x2ff, 0x400 to 0x6ff and 0x800 to 0x9ff.
  wire [14:0] offset  = req_i.addr[14:0];
  wire [6:0]  page    = offset[14:8];
  wire        singles = (page == 7'd2) && (offset[7:6] == '0);
  wire        keys    = (page == 7'd2) && (offset[7:6] == 2'd1) && Steering;
  wire        entries = (page[6:1] == 6'd2) && Steering;
  wire        addrs   = (page == 7'd6) && !offset[7] && Filters;
  wire        vlans   = (page[6:1] == 6'd4) && Filters;
  wire        mine    = (page == 7'd2) || (page[6:1] == 6'd2) || (page == 7'd6) ||
                        (page[6:1] == 6'd4);
  wire [3:0]  word    = offset[5:2];
  wire [31:0] value   = req_i.wdata;

  // An access is looked at in its second cycle and answered in its third.
  logic seen_q, ack_q, write_q;
  wire  now = seen_q && req_i.valid && !ack_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      seen_q <= 1'b0;
      ack_q  <= 1'b0;
    end else begin
      seen_q <= req_i.valid && mine && !ack_q && !seen_q;
      ack_q  <= now;
    end
  end
  always_ff @(posedge clk_i) write_q <= req_i.write && (&req_i.be);

  // ---------------------------------------------------------------- settings
  typedef struct packed {
    hash_types_t types;
    logic [2:0]  bits;
    logic [5:0]  unclassified;
  } staged_t;
  staged_t     staged_q, used_q;
  logic        hash_q, steer_q, bank_q, follow_q;
  logic [5:0]  period_q;
  filter_cfg_t filter_q;

  wire set = now && write_q && singles;
  function automatic logic at(input logic [15:0] register);
    at = (16'h200 + 16'({word, 2'b00}) == register);
  endfunction
  wire [5:0] period = value[FwRxFollowPeriodLsb +: 6];
  wire       period_ok = (period >= 6'd10) && (period <= 6'd40);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      staged_q <= '0;
      used_q   <= '0;
      hash_q   <= 1'b0;
      steer_q  <= 1'b0;
      follow_q <= FwRxFollowReset[0];
      period_q <= FwRxFollowReset[FwRxFollowPeriodLsb +: 6];
      filter_q <= '{promiscuous: 1'b1, default: '0};
    end else if (set) begin
      if (Steering) begin
        if (at(FwRssTypesOffset) && value[31:6] == '0) staged_q.types <= value[5:0];
        if (at(FwRssTableBitsOffset) && value[31:3] == '0) staged_q.bits <= value[2:0];
        if (at(FwRssUnclassifiedOffset) && value[31:6] == '0) staged_q.unclassified <= value[5:0];
        if (at(FwRssApplyOffset) && value[31:2] == '0 && value[1:0] != 2'b10) begin
          used_q  <= staged_q;
          hash_q  <= value[0];
          steer_q <= value[1];
        end
        if (at(FwRxFollowOffset) && value[31:14] == '0 && value[7:1] == '0 && period_ok) begin
          follow_q <= value[0];
          period_q <= period;
        end
      end
      if (Filters && at(FwRxFilterOffset) && value[31:9] == '0 && value[7:6] == '0) begin
        filter_q <= {value[8], value[5:0]};
      end
    end
  end
  // Not reset: the half that is in use is that of the last write.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) bank_q <= 1'b0;
    else if (set && at(FwRssApplyOffset) && value[31:2] == '0 && value[0]) bank_q <= !bank_q;
  end

  always_comb begin
    steer_o.hash         = hash_q;
    steer_o.steer        = steer_q;
    steer_o.bank         = bank_q;
    steer_o.types        = hash_q ? used_q.types : '0;
    steer_o.mask         = 7'((8'd1 << used_q.bits) - 8'd1);
    steer_o.unclassified = used_q.unclassified;
    steer_o.follow       = follow_q && Steering;
    steer_o.period       = period_q;
  end
  assign filter_o      = filter_q;

  // ---------------------------------------------------------------- tables
  wire tables = now && write_q;
  logic [31:0] low_q;   // of an address
  always_ff @(posedge clk_i) begin
    if (tables && addrs && !offset[2]) low_q <= value;
  end
  always_comb begin
    steer_write_o.table_we = tables && entries;
    steer_write_o.key_we   = tables && keys;
    steer_write_o.row      = entries ? offset[8:2] : {3'd0, word};
    steer_write_o.data     = entries ? value : {value[7:0], value[15:8], value[23:16],
                                                value[31:24]};
    filter_write_o.address_we = tables && addrs && offset[2];
    filter_write_o.vlan_we    = tables && vlans;
    filter_write_o.row        = vlans ? offset[8:2] : {3'd0, offset[6:3]};
    filter_write_o.used       = value[31];
    filter_write_o.data       = vlans ? {16'd0, value} : {value[15:0], low_q};
  end

  // ---------------------------------------------------------------- answers
  logic [31:0] rdata, rdata_q;
  always_comb begin
    rdata = '0;
    if (singles && Steering) begin
      if (at(FwRssCapsOffset))         rdata = FwRssCapsReset;
      if (at(FwRssTypesOffset))        rdata[5:0] = staged_q.types;
      if (at(FwRssTableBitsOffset))    rdata[2:0] = staged_q.bits;
      if (at(FwRssUnclassifiedOffset)) rdata[5:0] = staged_q.unclassified;
      if (at(FwRssApplyOffset))        rdata[1:0] = {steer_q, hash_q};
      if (at(FwRxFollowOffset))        rdata[13:0] = {period_q, 7'd0, follow_q};
    end
    if (singles && Filters) begin
      if (at(FwRxFilterOffset))     rdata[8:0] = {filter_q[6], 2'b00, filter_q[5:0]};
      if (at(FwRxFilterCapsOffset)) rdata = FwRxFilterCapsReset;
    end
  end
  always_ff @(posedge clk_i) rdata_q <= rdata;
  logic mine_q;
  always_ff @(posedge clk_i) mine_q <= mine;
  always_comb begin
    window_req_o       = req_i;
    window_req_o.valid = req_i.valid && !mine;
  end
  assign rsp_o = '{ack: ack_q || window_rsp_i.ack, rdata: mine_q ? rdata_q : window_rsp_i.rdata};

  logic unused;
  assign unused = ^{req_i.addr, offset[1:0]};
endmodule

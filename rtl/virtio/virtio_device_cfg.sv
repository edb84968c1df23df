// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Device configuration of the network device (virtio 1.2, "Device configuration layout"), read
// only. Answers in two cycles.
module virtio_device_cfg
  import ferronic_pkg::*;
(
  input  logic     clk_i,
  input  logic     rst_ni,
  input  strap_t   strap_i,
  input  reg_req_t req_i,
  output reg_rsp_t rsp_o
);
  logic        ack_q;
  logic [31:0] rdata, rdata_q;
  wire  [47:0] mac = strap_i.mac;

  always_comb begin
    unique case (req_i.addr[11:2])
      10'd0:   rdata = {mac[23:16], mac[31:24], mac[39:32], mac[47:40]};
      10'd1:   rdata = {15'd0, strap_i.link_up, mac[7:0], mac[15:8]};
      // max_virtqueue_pairs exists only with MQ; mtu follows.
      10'd2:   rdata = {strap_i.mtu, 16'd1};
      // The speed is meaningful while the link is up (all ones: unknown).
      10'd3:   rdata = strap_i.link_up ? strap_i.speed_mbps : '1;
      10'd4:   rdata = {24'd0, strap_i.link_up ? 8'd1 : 8'hff};
      default: rdata = '0;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) ack_q <= 1'b0;
    else ack_q <= req_i.valid && !ack_q;
  end
  always_ff @(posedge clk_i) rdata_q <= rdata;
  assign rsp_o = '{ack: ack_q, rdata: rdata_q};

  logic unused;
  assign unused = ^{req_i, strap_i};
endmodule
